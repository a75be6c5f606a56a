//go:build unix

package integration_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/postburner/postburner/job"
)

// The kinds that the worker under test handles. Each records what it does in the journal.
type (
	// Record does nothing more.
	Record struct {
		N int `json:"n"`
	}
	// Fail fails its first Times attempts.
	Fail struct {
		N     int `json:"n"`
		Times int `json:"times"`
	}
	// Panic panics; Goexit ends its goroutine.
	Panic struct {
		N int `json:"n"`
	}
	Goexit struct {
		N int `json:"n"`
	}
	// Hold runs until the file Gate exists or its context ends, whose cause it then returns.
	Hold struct {
		N    int    `json:"n"`
		Gate string `json:"gate"`
	}
	// Stubborn runs until the file Gate exists, whatever its context says.
	Stubborn struct {
		N    int    `json:"n"`
		Gate string `json:"gate"`
	}
	// Kill ends its process: How is kill, exit or fatal.
	Kill struct {
		N   int    `json:"n"`
		How string `json:"how"`
	}
	// Nap runs for so many milliseconds.
	Nap struct {
		N      int `json:"n"`
		Millis int `json:"millis"`
	}
)

func (Record) Kind() string   { return "record" }
func (Fail) Kind() string     { return "fail" }
func (Panic) Kind() string    { return "panic" }
func (Goexit) Kind() string   { return "goexit" }
func (Hold) Kind() string     { return "hold" }
func (Stubborn) Kind() string { return "stubborn" }
func (Kill) Kind() string     { return "kill" }
func (Nap) Kind() string      { return "nap" }

// leakHandler adds the handler of the test of memory_limit, where there is one.
var leakHandler func(r *job.Registry, book *journal)

func handlers() *job.Registry {
	book := openJournal(os.Getenv(journalVariable))
	r := job.NewRegistry()
	job.Handle(r, func(ctx context.Context, a Record) error {
		book.write(ctx, "start", a.N, "")
		return nil
	})
	job.Handle(r, func(ctx context.Context, a Fail) error {
		attempt, err := job.FromContext(ctx).Attempt(ctx)
		if err != nil {
			return fmt.Errorf("ask for the attempt: %w", err)
		}
		book.write(ctx, "start", a.N, fmt.Sprint("attempt ", attempt))
		if attempt <= a.Times {
			return errors.New("asked to fail")
		}
		return nil
	})
	job.Handle(r, func(ctx context.Context, a Panic) error {
		book.write(ctx, "start", a.N, "")
		panic("asked to panic")
	})
	job.Handle(r, func(ctx context.Context, a Goexit) error {
		book.write(ctx, "start", a.N, "")
		runtime.Goexit()
		return nil
	})
	job.Handle(r, func(ctx context.Context, a Hold) error {
		book.write(ctx, "start", a.N, "")
		if err := waitForFile(ctx, a.Gate); err != nil {
			book.write(ctx, "cancelled", a.N, err.Error())
			return err
		}
		book.write(ctx, "end", a.N, "")
		return nil
	})
	job.Handle(r, func(ctx context.Context, a Stubborn) error {
		book.write(ctx, "start", a.N, "")
		if err := waitForFile(context.WithoutCancel(ctx), a.Gate); err != nil {
			return err
		}
		book.write(ctx, "end", a.N, "")
		return nil
	})
	job.Handle(r, func(ctx context.Context, a Kill) error {
		book.write(ctx, "start", a.N, "")
		switch a.How {
		case "exit":
			os.Exit(0)
		case "fatal": // no recover sees it
			new(sync.Mutex).Unlock()
		}
		err := syscall.Kill(os.Getpid(), syscall.SIGKILL)
		<-ctx.Done() // the signal may take a moment
		return err
	})
	build := buildOf()
	job.Handle(r, func(ctx context.Context, a Nap) error {
		book.write(ctx, "start", a.N, build)
		select {
		case <-time.After(time.Duration(a.Millis) * time.Millisecond):
			book.write(ctx, "end", a.N, "")
			return nil
		case <-ctx.Done():
			book.write(ctx, "cancelled", a.N, context.Cause(ctx).Error())
			return context.Cause(ctx)
		}
	})
	if leakHandler != nil {
		leakHandler(r, book)
	}
	activeJobHandlers(r, book)
	return r
}

// waitForFile returns nil once the file exists and the context's cause if that ends first.
func waitForFile(ctx context.Context, path string) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
