package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postburner/postburner/job"
)

// Item is one job of EnqueueMany.
type Item struct {
	Args    job.Args
	Options []Option
}

// Result is what became of one job of EnqueueMany.
type Result struct {
	Receipt
	Err error // as of Enqueue
}

// ManyError says that some of the jobs of EnqueueMany were not, or not certainly, enqueued.
type ManyError struct {
	Total   int
	Failed  int   // jobs with an error
	Unknown int   // how many of Failed have ErrUnknownOutcome: enqueueing those again may double them
	First   int   // index of the first that failed
	Err     error // its error
}

func (e *ManyError) Error() string {
	unknown := ""
	if e.Unknown > 0 {
		unknown = fmt.Sprintf("the outcome of %d is unknown; ", e.Unknown)
	}
	return fmt.Sprintf("client: %d of %d jobs were not, or not certainly, enqueued; %sthe first, at index %d: %v", e.Failed, e.Total, unknown, e.First, e.Err)
}

// Unwrap returns the first error.
func (e *ManyError) Unwrap() error { return e.Err }

// chunk is how many jobs are encoded, and held in memory, at a time.
const chunk = 2000

// EnqueueMany puts many jobs without waiting for one answer before the next job is sent, and returns one result each, in their order. Its error is nil if all are
// enqueued, else a *ManyError. A job that is invalid or too large does not keep the others back.
//
// Jobs go in chunks of 2,000, each over one connection. If it is lost, the rest of that chunk
// has ErrUnknownOutcome (sent) or ErrNotSent; the next chunk dials again. Nothing is sent twice.
// Memory does not grow with the number of jobs, beyond the results.
func (c *Client) EnqueueMany(ctx context.Context, items []Item) ([]Result, error) {
	results := make([]Result, len(items))
	// One chunk is encoded while the one before it is under way.
	ready := make(chan batch, 1)
	go func() {
		defer close(ready)
		for from := 0; from < len(items); from += chunk {
			to := min(from+chunk, len(items))
			ready <- c.prepareChunk(items[from:to], results[from:to])
		}
	}()
	for b := range ready {
		if len(b.items) > 0 {
			c.send(ctx, b.items, b.at, b.results)
		}
	}
	var failure *ManyError
	for i := range results {
		if results[i].Err == nil {
			continue
		}
		if failure == nil {
			failure = &ManyError{Total: len(items), First: i, Err: results[i].Err}
		}
		failure.Failed++
		if errors.Is(results[i].Err, ErrUnknownOutcome) {
			failure.Unknown++
		}
	}
	if failure != nil {
		return results, failure
	}
	return results, nil
}

// batch is the valid jobs of a chunk, encoded, and where their results belong.
type batch struct {
	items   []item
	at      []int
	results []Result
}

// prepareChunk encodes what is valid, and notes what is not in results.
func (c *Client) prepareChunk(items []Item, results []Result) batch {
	now := time.Now()
	b := batch{items: make([]item, 0, len(items)), at: make([]int, 0, len(items)), results: results}
	for i, it := range items {
		prepared, err := c.prepare(it.Args, it.Options, now)
		results[i] = Result{prepared.receipt, err}
		if err == nil {
			b.items = append(b.items, prepared)
			b.at = append(b.at, i)
		}
	}
	return b
}
