package worker

import (
	"runtime/debug"
	"time"
)

// EventType is what happened to a job.
type EventType string

// The events. Each job that is run has a perform_start and a perform; then whichever
// of the others is its outcome, none if it was simply done. The outcome of a stuck
// handler comes before its perform, if that comes at all; expired and malformed jobs
// have only their outcome.
const (
	EventPerformStart EventType = "perform_start" // its handler starts
	EventPerform      EventType = "perform"       // its handler has returned: Duration, Err
	EventRetry        EventType = "retry"         // it was released: Wait, Attempt, Err
	EventDiscard      EventType = "discard"       // it was deleted without having succeeded: Reason, Err
	EventBury         EventType = "bury"          // it was buried: Reason, Err
	EventLost         EventType = "lost"          // its lease was lost, or its deletion unknown: it may run again
	EventInterrupted  EventType = "interrupted"   // it was handed back at a stop, no attempt counted
)

// Event is what happened to one job. Fields that do not belong to the type, or are not known, are zero.
type Event struct {
	Type        EventType
	Kind        string
	JobID       string
	BeanstalkID uint64
	Tube        string
	Attempt     int           // from 1; of retry, discard and bury
	Duration    time.Duration // of the handler
	Wait        time.Duration // asked of the server, which counts in whole seconds, rounded up
	Reason      string        // of discard and bury
	Err         error         // what the handler returned, or why the job is lost
}

// Observer is told of every event by the consumer that it happens to. It must be quick,
// and safe for concurrent use. If it panics, that is logged and changes no outcome.
type Observer interface{ Observe(e Event) }

// ObserverFunc makes a function an Observer.
type ObserverFunc func(e Event)

// Observe calls f.
func (f ObserverFunc) Observe(e Event) { f(e) }

func (p *Pool) observe(e Event) {
	if p.opts.Observer == nil {
		return
	}
	defer p.recoverCallback("Options.Observer")
	p.opts.Observer.Observe(e)
}

// recoverCallback, deferred, keeps a callback's panic from changing what becomes of a job.
func (p *Pool) recoverCallback(name string) {
	value := recover()
	if value == nil {
		return
	}
	defer func() { _ = recover() }() // the logger may panic too, and there is nobody left to tell
	p.opts.Logger.Error("a callback panicked; the job is not affected", "callback", name, "panic", value, "stack", string(debug.Stack()))
}
