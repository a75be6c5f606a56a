// Package app is the program: its commands, how the other packages are wired, logging,
// signals and exit codes. A worker with Go handlers is three lines around Main:
//
//	registry := job.NewRegistry()
//	job.Handle(registry, sendEmail)
//	app.Main(registry)
package app

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/postburner/postburner/job"
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
	Args   []string // without the program's name
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// LookupEnv finds the variables that override the configuration. nil: os.LookupEnv.
	LookupEnv func(name string) (string, bool)
	Registry  *job.Registry // the programs of the configuration are added to it; nil: no Go handlers

	embeddedAddr string // where the embedded broker listens; "": beanstalkd's own port
}

// Run runs a command line and returns its exit code. The end of ctx is like a TERM.
// work, child, broker and demo take over the process's signals and never give them back. A
// second TERM, or a handler that cannot be ended, exits the process.
func Run(ctx context.Context, o Options) int {
	if o.Registry == nil {
		o.Registry = job.NewRegistry()
	}
	if o.embeddedAddr == "" {
		o.embeddedAddr = embeddedAddr
	}
	p := &program{Options: o}
	root := p.root()
	root.SetArgs(o.Args)
	root.SetIn(o.Stdin)
	root.SetOut(o.Stdout)
	root.SetErr(o.Stderr)
	root.InitDefaultCompletionCmd(o.Args...) // it writes to the output of SetOut
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		completion.Example = "  postburner completion bash > /etc/bash_completion.d/postburner"
	}
	markUsage(root)
	called, err := root.ExecuteContextC(ctx)
	return p.report(called, err)
}

// program is one run.
type program struct{ Options }

// print writes to standard output.
func (p *program) print(format string, args ...any) error {
	_, err := fmt.Fprintf(p.Stdout, format, args...)
	return err
}
