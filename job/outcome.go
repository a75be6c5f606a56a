package job

import (
	"errors"
	"fmt"
	"time"
)

// Why a handler's context ended before the handler did: see [context.Cause].
var (
	// ErrLeaseLost: the server took the job back, or its connection is gone. Another worker may run it by
	// now, and what this handler returns no longer matters.
	ErrLeaseLost = errors.New("job: lease lost, the job may be running elsewhere by now")
	// ErrShutdown: the worker stops and its shutdown timeout is over. A handler that returns an error now, whatever
	// it asks for, has its job handed back with no attempt counted; one that returns nil is done.
	ErrShutdown = errors.New("job: the worker is shutting down")
)

// Action is what becomes of a job after its handler.
type Action int

// The actions. Retry is what any error that asks for nothing else means.
const (
	ActionDone Action = iota
	ActionRetry
	ActionDiscard
	ActionBury
)

func (a Action) String() string {
	switch a {
	case ActionDone:
		return "done"
	case ActionRetry:
		return "retry"
	case ActionDiscard:
		return "discard"
	case ActionBury:
		return "bury"
	}
	return fmt.Sprint("action ", int(a))
}

// outcome is an error that says what becomes of the job.
type outcome struct {
	action Action
	delay  time.Duration
	err    error
}

func (o *outcome) Error() string {
	text := o.action.String()
	if o.action == ActionRetry {
		text = fmt.Sprint("retry in ", o.delay)
	}
	if o.err == nil {
		return text
	}
	return text + ": " + o.err.Error()
}

func (o *outcome) Unwrap() error { return o.err }

// RetryIn has the attempt counted as failed and the job tried again after d, instead of
// after the delay of the policy, if attempts are left. d below 0 counts as 0; the
// worker waits a second at least. err says why and may be nil.
func RetryIn(d time.Duration, err error) error {
	return &outcome{ActionRetry, max(d, 0), err}
}

// Discard has the job deleted: it will never succeed, and nobody need look at it. err may be nil.
func Discard(err error) error { return &outcome{action: ActionDiscard, err: err} }

// Bury has the job set aside for someone to look at. err may be nil.
func Bury(err error) error { return &outcome{action: ActionBury, err: err} }

// Verdict is what a handler's result asks for.
type Verdict struct {
	Action Action
	Delay  time.Duration // of ActionRetry, if Chosen
	Chosen bool          // the handler chose the delay
	Err    error         // nil only if done
}

// VerdictOf reads a handler's error. Where errors that ask for something are wrapped in
// each other, the outermost counts.
func VerdictOf(err error) Verdict {
	if err == nil {
		return Verdict{}
	}
	if o, ok := errors.AsType[*outcome](err); ok {
		return Verdict{o.action, o.delay, o.action == ActionRetry, err}
	}
	return Verdict{Action: ActionRetry, Err: err}
}

// PanicError is a handler's panic. It counts as a failed attempt.
type PanicError struct {
	Value any
	Stack []byte // as debug.Stack gave it
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the value if the handler panicked with an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// ErrGoexit is the failed attempt of a handler that called runtime.Goexit, as testing's FailNow does.
var ErrGoexit = errors.New("handler ended its goroutine with runtime.Goexit")
