// Package worker runs jobs: a Pool is a bounded number of consumers in one
// process, each with a beanstalkd connection of its own. worker/swarm keeps several such
// processes alive.
package worker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/job"
	"github.com/postburner/postburner/retry"
)

// Options configures a Pool. Registry and Tubes are required; the rest has defaults.
type Options struct {
	Beanstalk       beanstalk.Options // server address; Tubes and Redial are set by the pool
	Tubes           []string          // full names
	Registry        *job.Registry
	Threads         int           // consumers; default 1
	Limit           int           // jobs started before Run drains and returns ErrLimit; 0 = unlimited
	ReserveTimeout  time.Duration // default 3 s
	ShutdownTimeout time.Duration // default 300 s
	MaxRuntime      time.Duration // deadline of one execution; 0 = none
	Retry           retry.Policy  // the zero Policy means retry.Default()
	Observer        Observer      // nil = none
	Board           Board         // nil = none
	Recycling       func()        // called once when Limit is reached, before the drain
	Logger          *slog.Logger  // default slog.Default()
}

// Pool is the consumers of one process.
type Pool struct{}

func New(opts Options) (*Pool, error) { panic("unwritten") }

// Run consumes until ctx ends (then drains and returns nil) or Limit jobs have been
// started (then drains and returns ErrLimit). When it returns, nothing it started is left.
func (p *Pool) Run(ctx context.Context) error { panic("unwritten") }

// Quiet stops reserving for good; running jobs go on.
func (p *Pool) Quiet() { panic("unwritten") }

// Stats is a snapshot; counters are since the start.
func (p *Pool) Stats() Stats { panic("unwritten") }

type Stats struct {
	Threads, Connected, Busy                                     int
	Started, Done, Retried, Discarded, Buried, Lost, Interrupted uint64
	// + Stuck, PossibleDuplicates, Reconnects …
	Quiet bool
}

// ErrLimit is how Run says that Limit was reached and the drain is over.
var ErrLimit = errors.New("job limit reached")

// Board is where each consumer notes the job it runs; calls are made by the consumer itself
// and must be fast. Consumers are numbered from 0.
type Board interface {
	Start(consumer int, id uint64, kind string, at time.Time)
	Finish(consumer int)
}

// Event is what happened to one job.
type Event struct {
	Type        EventType
	Kind, JobID string
	BeanstalkID uint64
	Tube        string
	Attempt     int // 0 where not known
	Duration    time.Duration
	Wait        time.Duration // retry
	Reason      string        // bury, discard
	Err         error
}

type EventType string

const (
	EventPerformStart EventType = "perform_start"
	EventPerform      EventType = "perform"
	EventRetry        EventType = "retry"
	EventDiscard      EventType = "discard"
	EventBury         EventType = "bury"
	EventLost         EventType = "lost"
	EventInterrupted  EventType = "interrupted"
)

// Observer sees every event; it is called by the consumer, so it must be quick and safe for
// concurrent use. A panic in it is logged and changes no outcome.
type Observer interface{ Observe(Event) }
