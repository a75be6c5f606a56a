package worker

import (
	"runtime/debug"
	"time"
)

// EventType is what happened to a job.
type EventType string

// The events. Each job that is run has a perform_start and a perform; then whichever
// of the others is its outcome, none if it was simply done.
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
	Attempt     int
	Duration    time.Duration
	Wait        time.Duration
	Reason      string
	Err         error
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
	defer p.shrugOff("observer")
	p.opts.Observer.Observe(e)
}

// shrugOff keeps a panic in what merely looks on from changing what it looks at.
func (p *Pool) shrugOff(who string) {
	value := recover()
	if value == nil {
		return
	}
	defer func() { _ = recover() }() // the logger is such a bystander too, and there is nobody left to tell
	p.opts.Logger.Error("panic in a bystander; the job is not affected", "in", who, "panic", value, "stack", string(debug.Stack()))
}
