package client

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/job"
)

// Raw are arguments that are JSON already, for a kind that has no Go type here.
type Raw struct {
	JobKind   string
	Arguments json.RawMessage // an object
}

// Kind returns JobKind.
func (r Raw) Kind() string { return r.JobKind }

// MarshalJSON returns Arguments.
func (r Raw) MarshalJSON() ([]byte, error) { return r.Arguments, nil }

// ArgumentsError says that the arguments cannot be encoded as a job's.
type ArgumentsError struct {
	Kind string
	Err  error
}

func (e *ArgumentsError) Error() string {
	return fmt.Sprintf("client: arguments of kind %q: %v", e.Kind, e.Err)
}

// Unwrap returns what is wrong.
func (e *ArgumentsError) Unwrap() error { return e.Err }

// TooLargeError is a job that the server would not take, or would take and lose: with a
// body of exactly max-job-size, or one byte less, beanstalkd writes a binlog that it
// cannot read any more.
type TooLargeError struct{ Size, Max int }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("client: the job has %d bytes, at most %d are safe: put a reference into the arguments instead of the data, or raise beanstalkd's -z", e.Size, e.Max)
}

// item is a job ready to be put.
type item struct {
	receipt Receipt
	put     beanstalk.Put
}

// prepare encodes one job. Nothing is sent.
func (c *Client) prepare(args job.Args, options []Option, now time.Time) (item, error) {
	p := put{queue: c.opts.DefaultQueue, priority: c.opts.DefaultPriority, ttr: c.opts.DefaultTTR}
	for _, option := range options {
		option(&p)
	}
	if err := p.check(); err != nil {
		return item{}, err
	}
	tube, err := tubeOf(c.opts.Environment, p.queue)
	if err != nil {
		return item{}, err
	}
	e, err := envelope(args, p, now)
	if err != nil {
		return item{}, err
	}
	body, err := e.Encode()
	if err != nil {
		return item{}, &ArgumentsError{args.Kind(), err}
	}
	delay := p.delay
	if !p.at.IsZero() {
		delay = max(p.at.Sub(now), 0)
	}
	return item{
		receipt: Receipt{JobID: e.ID, Tube: tube},
		put:     beanstalk.Put{Tube: tube, Body: body, Priority: *p.priority, Delay: delay, TTR: p.ttr},
	}, nil
}

func envelope(args job.Args, p put, now time.Time) (*job.Envelope, error) {
	if args == nil {
		return nil, &ArgumentsError{Err: fmt.Errorf("there are none")}
	}
	kind := args.Kind()
	if kind == "" {
		return nil, &ArgumentsError{kind, fmt.Errorf("%T names no kind", args)}
	}
	object, err := job.Marshal(args)
	if err != nil {
		return nil, &ArgumentsError{kind, err}
	}
	if object[0] != '{' {
		return nil, &ArgumentsError{kind, fmt.Errorf("%T does not encode as a JSON object", args)}
	}
	id := p.jobID
	if id == "" {
		fresh, err := uuid.NewV7()
		if err != nil {
			return nil, fmt.Errorf("client: make a job id: %w", err)
		}
		id = fresh.String()
	}
	arguments := make(json.RawMessage, 0, len(object)+2)
	arguments = append(append(append(arguments, '['), object...), ']')
	ttr := int((p.ttr + time.Second - 1) / time.Second)
	e := &job.Envelope{
		Kind: kind, ID: id, Queue: p.queue, Arguments: arguments, Priority: p.priority, TTR: &ttr, EnqueuedAt: now,
		ExpiresAt: p.expiresAt, Tracked: p.tracked, MaxRetries: p.maxRetries, Metadata: p.metadata,
	}
	switch {
	case !p.at.IsZero():
		e.ScheduledAt = p.at
	case p.delay > 0:
		e.ScheduledAt = now.Add(p.delay)
	}
	return e, nil
}
