// Package app is the program: its commands, how the other packages are wired, logging,
// signals and exit codes. A worker with Go handlers is three lines around Main:
//
//	registry := job.NewRegistry()
//	job.Handle(registry, sendEmail)
//	app.Main(registry)
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/postburner/postburner/config"
	"github.com/postburner/postburner/job"
)

// Exit codes.
const (
	ExitOK       = 0
	ExitFailure  = 1
	ExitUsage    = 2  // the command line
	ExitConfig   = 78 // the configuration, EX_CONFIG of sysexits.h
	ExitRecycled = 99 // gc_limit was reached: start the process again
)

// Main runs the command line and exits. The registry's handlers work beside the
// programs of postburner.yml; nil: those alone, as in the stock binary.
func Main(registry *job.Registry) {
	os.Exit(Run(context.Background(), Options{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Registry: registry,
	}))
}

// Options is what a program is run with.
type Options struct {
	Args     []string // without the program's name
	Stdin    io.Reader
	Stdout   io.Writer
	Stderr   io.Writer
	Registry *job.Registry // nil: no Go handlers
}

// Run runs a command line and returns its exit code. The end of ctx is like a TERM.
// Commands that work trap signals for the whole process.
func Run(ctx context.Context, o Options) int {
	if o.Registry == nil {
		o.Registry = job.NewRegistry()
	}
	p := &program{Options: o}
	root := p.root()
	root.SetArgs(o.Args)
	root.SetIn(o.Stdin)
	root.SetOut(o.Stdout)
	root.SetErr(o.Stderr)
	return p.report(root.ExecuteContext(ctx))
}

// program is one run.
type program struct{ Options }

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

// report tells the operator of an error and returns the exit code.
func (p *program) report(err error) int {
	if err == nil {
		return ExitOK
	}
	exit, ok := errors.AsType[*exitError](err)
	if !ok { // cobra's own: the command line
		exit = &exitError{ExitUsage, err}
	}
	if exit.err != nil {
		for line := range strings.Lines(exit.err.Error()) {
			p.complain("postburner: %s\n", strings.TrimSuffix(line, "\n"))
		}
	}
	if exit.code == ExitUsage {
		p.complain("Run 'postburner --help' to see what there is.\n")
	}
	return exit.code
}

func (p *program) complain(format string, args ...any) {
	_, _ = fmt.Fprintf(p.Stderr, format, args...) // nowhere left to say that this failed
}

// print writes to standard output.
func (p *program) print(format string, args ...any) error {
	_, err := fmt.Fprintf(p.Stdout, format, args...)
	return failed(err)
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "postburner",
		Short: "Background jobs from beanstalkd",
		Long: `Postburner runs background jobs from beanstalkd.

A worker is configured in postburner.yml (config/postburner.yml or ./postburner.yml, or
--config). Each setting can be overridden by a variable such as POSTBURNER_FORKS, and
the usual ones by a flag.`,
		Example: `  postburner work --env production --worker default
  postburner enqueue SendEmail --args '{"user_id": 7}'
  postburner check --env production`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
	}
	root.AddCommand(p.workCommand(), p.childCommand(), p.enqueueCommand(), p.checkCommand(), p.brokerCommand(),
		p.demoCommand(), p.schemaCommand(), p.versionCommand())
	return root
}
