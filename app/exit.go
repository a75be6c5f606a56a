package app

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/postburner/postburner/config"
	"github.com/postburner/postburner/worker/swarm"
)

// Exit codes.
const (
	ExitOK       = 0
	ExitFailure  = 1
	ExitUsage    = 2                  // the command line
	ExitConfig   = 78                 // the configuration, EX_CONFIG of sysexits.h
	ExitRecycled = swarm.ExitRecycled // gc_limit was reached: start the process again
)

// exitError ends the program with a code of its own. A nil err says that all has been said.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprint("exit code ", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usage marks an error of how a command was called, as against of what it does.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{ExitUsage, err}
}

// markUsage makes the errors of all commands' Args errors of usage, those of cobra's own commands included.
func markUsage(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error { return usage(check(cmd, args)) }
	}
	for _, sub := range cmd.Commands() {
		markUsage(sub)
	}
}

// exitCode is what the program exits with after an error.
func exitCode(err error) int {
	if exit, ok := errors.AsType[*exitError](err); ok {
		return exit.code
	}
	if _, ok := errors.AsType[config.Problems](err); ok {
		return ExitConfig
	}
	return ExitFailure
}

// report tells the operator of the error that a command ended with, and returns the exit code.
func (p *program) report(called *cobra.Command, err error) int {
	if err == nil {
		return ExitOK
	}
	code := exitCode(err)
	if exit, ok := errors.AsType[*exitError](err); ok && exit.err == nil {
		return code
	}
	prefix := "postburner: "
	if code == ExitConfig { // each line begins with a place that editors understand
		prefix = ""
	}
	for line := range strings.Lines(err.Error()) {
		p.complain("%s%s\n", prefix, strings.TrimSuffix(line, "\n"))
	}
	if code == ExitUsage {
		p.complain("See '%s --help'.\n", called.CommandPath())
	}
	return code
}

func (p *program) complain(format string, args ...any) {
	_, _ = fmt.Fprintf(p.Stderr, format, args...) // nowhere left to say that this failed
}
