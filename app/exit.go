package app

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/postburner/postburner/config"
)

// Exit codes.
const (
	ExitOK       = 0
	ExitFailure  = 1
	ExitUsage    = 2  // the command line
	ExitConfig   = 78 // the configuration, EX_CONFIG of sysexits.h
	ExitRecycled = 99 // gc_limit was reached: start the process again
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

// failed marks an error of what a command does, as against of how it was called.
func failed(err error) error {
	if err == nil {
		return nil
	}
	code := ExitFailure
	if _, ok := errors.AsType[config.Problems](err); ok {
		code = ExitConfig
	}
	return &exitError{code, err}
}

// report tells the operator of the error that a command ended with, and returns the exit code.
func (p *program) report(called *cobra.Command, err error) int {
	if err == nil {
		return ExitOK
	}
	exit, ok := errors.AsType[*exitError](err)
	if !ok { // the command line's
		exit = &exitError{ExitUsage, err}
	}
	if exit.err == nil {
		return exit.code
	}
	prefix := "postburner: "
	if exit.code == ExitConfig { // each line begins with a place that editors understand
		prefix = ""
	}
	for line := range strings.Lines(exit.err.Error()) {
		p.complain("%s%s\n", prefix, strings.TrimSuffix(line, "\n"))
	}
	if exit.code == ExitUsage {
		p.complain("See '%s --help'.\n", called.CommandPath())
	}
	return exit.code
}

func (p *program) complain(format string, args ...any) {
	_, _ = fmt.Fprintf(p.Stderr, format, args...) // nowhere left to say that this failed
}
