package worker

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/job"
	"github.com/postburner/postburner/retry"
)

// Options configures a Pool. Registry, Tubes and the server's address are required.
type Options struct {
	Beanstalk beanstalk.Options // the server; the pool sets Tubes and Redial itself
	Tubes     []string          // full names
	Registry  *job.Registry

	Threads         int           // consumers; default 1
	Limit           int           // jobs to start before the pool drains and Run returns ErrLimit; 0: no limit
	ReserveTimeout  time.Duration // of one reserve, in whole seconds; a server that is silent 10 s longer counts as gone; default 3 s
	ShutdownTimeout time.Duration // how long running handlers may go on after a stop; default 300 s
	MaxRuntime      time.Duration // the deadline of one execution; 0: none
	StuckAfter      time.Duration // how long a handler may ignore its ended context before its job is settled as failed; default 10 s
	Retry           retry.Policy  // the zero Policy means retry.Default()

	PoisonDeaths   int  // deaths of processes after which a suspect is buried: see Pool.Suspect; 0: never
	PoisonReserves int  // reserves that nothing explains after which a vigilant consumer treats a job as a suspect; 0: never
	Vigilant       bool // consumers are vigilant from the start: nobody can tell how the processes before this one ended

	Observer  Observer     // told of every event; nil: nobody is
	Board     Board        // where consumers note what they run; nil: nowhere
	Recycling func()       // called once, by a consumer, when Limit is reached and before the drain; must not block; nil: nobody is told
	Stuck     func()       // called for each handler that is stuck, from a goroutine of its own; nil: nobody is told
	Logger    *slog.Logger // default slog.Default()
}

// Board is where each consumer notes the job that it runs, for someone who looks on
// from outside. Consumers are numbered from 0; id is beanstalkd's, and key tells it from
// the same id on another server. The calls of one consumer never overlap;
// they are in the way of every job and must be quick.
type Board interface {
	Start(consumer int, id, key uint64, kind string, at time.Time)
	Finish(consumer int)
}

// complete fills in the defaults and reports every option that is wrong.
func (o *Options) complete() error {
	var problems []error
	if o.Registry == nil {
		problems = append(problems, errors.New("worker: Options.Registry is missing"))
	}
	if len(o.Tubes) == 0 {
		problems = append(problems, errors.New("worker: Options.Tubes is empty: name at least one tube"))
	}
	for name, n := range map[string]int{"Threads": o.Threads, "Limit": o.Limit, "PoisonDeaths": o.PoisonDeaths, "PoisonReserves": o.PoisonReserves} {
		if n < 0 {
			problems = append(problems, fmt.Errorf("worker: Options.%s is %d, want 0 or more", name, n))
		}
	}
	for name, d := range map[string]time.Duration{
		"ReserveTimeout": o.ReserveTimeout, "ShutdownTimeout": o.ShutdownTimeout, "MaxRuntime": o.MaxRuntime, "StuckAfter": o.StuckAfter,
	} {
		if d < 0 {
			problems = append(problems, fmt.Errorf("worker: Options.%s is %v, want 0 or more", name, d))
		}
	}
	if err := o.Retry.Validate(); err != nil {
		problems = append(problems, fmt.Errorf("worker: Options.Retry: %w", err))
	}
	orDefault(&o.Threads, 1)
	orDefault(&o.ReserveTimeout, 3*time.Second)
	orDefault(&o.ShutdownTimeout, 300*time.Second)
	orDefault(&o.StuckAfter, 10*time.Second)
	orDefault(&o.Retry, retry.Default())
	orDefault(&o.Logger, slog.Default())
	return errors.Join(problems...)
}

func orDefault[T comparable](value *T, standard T) {
	if *value == *new(T) {
		*value = standard
	}
}
