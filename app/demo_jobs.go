package app

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/postburner/postburner/client"
	"github.com/postburner/postburner/job"
)

// The demonstration: so many jobs of each sort, and what has to come of them.
const (
	demoJobs     = 1000
	demoFailOnce = 40 // of them
	demoFail     = 9  // of them, always
	demoPanic    = 1  // of them, always
	demoRetries  = 1

	demoBuried     = demoFail + demoPanic
	demoDone       = demoJobs - demoBuried
	demoRetried    = demoFailOnce + demoBuried*demoRetries
	demoExecutions = demoJobs + demoRetried
)

// The kinds of its jobs.
const (
	kindSucceed  = "demo.succeed"
	kindFailOnce = "demo.fail_once"
	kindFail     = "demo.fail"
	kindPanic    = "demo.panic"
)

// demoItems are the jobs, those that fail spread among the others.
func demoItems() []client.Item {
	items := make([]client.Item, demoJobs)
	for i := range items {
		kind := kindSucceed
		switch {
		case i == demoJobs/2+1:
			kind = kindPanic
		case i%(demoJobs/demoFailOnce) == 0:
			kind = kindFailOnce
		case i%(demoJobs/demoFail) == 1:
			kind = kindFail
		}
		items[i] = client.Item{Args: client.Raw{JobKind: kind, Arguments: json.RawMessage("{}")}}
	}
	return items
}

// What a handler writes into the journal for an execution.
const (
	noteSucceeded = "s"
	noteFailed    = "f"
	notePanicked  = "p"
)

// demoWork is how long each job takes.
const demoWork = 5 * time.Millisecond

// addDemoHandlers registers the handlers of a child. Each execution is one letter in the
// journal, an independent count of what happened: it is appended by one write, so all children share the file.
func addDemoHandlers(registry *job.Registry, journal string) {
	file, openErr := os.OpenFile(journal, os.O_APPEND|os.O_WRONLY, 0o600)
	handle := func(kind string, f func(ctx context.Context, j *job.Job) (note string, err error)) {
		registry.Handle(kind, job.HandlerFunc(func(ctx context.Context, j *job.Job) error {
			if openErr != nil {
				return openErr
			}
			timer := time.NewTimer(demoWork)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			note, err := f(ctx, j)
			if _, writeErr := file.WriteString(note); writeErr != nil {
				return writeErr
			}
			if note == notePanicked {
				panic(err)
			}
			return err
		}))
	}
	handle(kindSucceed, func(context.Context, *job.Job) (string, error) { return noteSucceeded, nil })
	handle(kindFailOnce, func(ctx context.Context, j *job.Job) (string, error) {
		attempt, err := j.Attempt(ctx)
		if err != nil {
			return noteFailed, err
		}
		if attempt == 1 {
			return noteFailed, errors.New("fails once")
		}
		return noteSucceeded, nil
	})
	handle(kindFail, func(context.Context, *job.Job) (string, error) { return noteFailed, errors.New("fails always") })
	handle(kindPanic, func(context.Context, *job.Job) (string, error) { return notePanicked, errors.New("panics always") })
}
