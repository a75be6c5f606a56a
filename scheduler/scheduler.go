package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/postburner/postburner/beanstalk"
)

// Options configures a Scheduler. The server and Tube are required.
type Options struct {
	Beanstalk beanstalk.Options // the server; the scheduler sets Tubes itself
	Tube      string            // full name of the scheduler tube
	Interval  time.Duration     // how long a watchdog sleeps, in whole seconds; default 300 s
	Priority  uint32            // of the watchdog; default 100
	Timeout   time.Duration     // how often to look whether there is a watchdog, in whole seconds; default 3 s
	Logger    *slog.Logger      // default slog.Default()
}

// watchdogTTR is how long a process may take over a watchdog before it goes to another one.
const watchdogTTR = 60 * time.Second

// Scheduler looks after the watchdog.
type Scheduler struct {
	opts Options
	conn *beanstalk.Conn
	tube tube
}

// tube is what the scheduler asks of its connection.
type tube interface {
	Reserve(ctx context.Context, timeout time.Duration) (*beanstalk.Job, error)
	StatsTube(ctx context.Context, tube string) (beanstalk.TubeStats, error)
	StatsJob(ctx context.Context, id uint64) (beanstalk.JobStats, error)
	PeekDelayed(ctx context.Context, tube string) (id uint64, body []byte, err error)
	KickJob(ctx context.Context, id uint64) error
	Put(ctx context.Context, p beanstalk.Put) (uint64, error)
	Delete(ctx context.Context, j *beanstalk.Job) error
	DeleteID(ctx context.Context, id uint64) error
	Release(ctx context.Context, j *beanstalk.Job, pri uint32, delay time.Duration) error
	Bury(ctx context.Context, j *beanstalk.Job, pri uint32) error
	Disconnect()
}

// New checks the options and returns a Scheduler that has started nothing yet. Its error names every option that is wrong.
func New(opts Options) (*Scheduler, error) {
	var problems []error
	if err := beanstalk.CheckTube(opts.Tube); err != nil {
		problems = append(problems, fmt.Errorf("scheduler: Options.Tube: %w", err))
	}
	for _, d := range []struct {
		name     string
		value    *time.Duration
		standard time.Duration
	}{{"Interval", &opts.Interval, 300 * time.Second}, {"Timeout", &opts.Timeout, 3 * time.Second}} {
		if *d.value == 0 {
			*d.value = d.standard
		}
		if *d.value < time.Second {
			problems = append(problems, fmt.Errorf("scheduler: Options.%s is %v, want a second or more", d.name, *d.value))
		}
	}
	if opts.Priority == 0 {
		opts.Priority = 100
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	opts.Beanstalk.Tubes = []string{opts.Tube}
	conn, err := beanstalk.New(opts.Beanstalk)
	if err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	return &Scheduler{opts: opts, conn: conn, tube: conn}, nil
}

// errorPause keeps an error that comes back at once from becoming a hot loop.
const errorPause = time.Second

// Run looks after the watchdog until ctx ends; then it returns nil, having given back
// what it held. No error of the server and no panic ends it. It must be called once.
func (s *Scheduler) Run(ctx context.Context) error {
	defer func() { _ = s.conn.Close() }() // always nil
	stop := context.AfterFunc(ctx, s.conn.Interrupt)
	defer stop()
	for ctx.Err() == nil {
		if err := s.turn(ctx); err != nil && ctx.Err() == nil {
			s.opts.Logger.Warn("the scheduler could not do its turn and tries again", "error", err)
			// What it may hold goes back, for whoever can do better.
			s.tube.Disconnect()
			wait(ctx, errorPause)
		}
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// turn waits for a watchdog and acts on it, or on there being none.
func (s *Scheduler) turn(ctx context.Context) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panic: %v", value)
		}
	}()
	j, err := s.tube.Reserve(context.WithoutCancel(ctx), s.opts.Timeout)
	switch {
	case errors.Is(err, beanstalk.ErrTimeout):
		return s.ensure(ctx)
	case errors.Is(err, beanstalk.ErrInterrupted):
		return nil
	case err != nil:
		return err
	}
	// A stop from here on waits for the turn to end: half of it would leave a duplicate.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), watchdogTTR/2)
	defer cancel()
	return s.collect(ctx, j)
}
