package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/postburner/postburner/beanstalk"
)

// Options configures a Scheduler. Beanstalk and Tube are required. Durations are 0, which stands for the default,
// or a second and more; anything else, a negative one too, is an error.
type Options struct {
	// Beanstalk is the server and how to reach it. The scheduler sets Tubes itself. Its own
	// defaults are those of beanstalk.Options.
	Beanstalk beanstalk.Options
	// Tube is the full name of the scheduler tube. It has no default.
	Tube string
	// Interval is how long a watchdog is delayed, in whole seconds, which the server counts in. Default 300 s.
	Interval time.Duration
	// Priority is the watchdog's; the lower, the more urgent. 0 stands for the default, 100, so the watchdog
	// cannot have priority 0.
	Priority uint32
	// Timeout is how long a reserve waits, and so how often the scheduler looks whether there
	// is a watchdog, in whole seconds too. Default 3 s.
	Timeout time.Duration
	// Logger takes what there is to say. Default slog.Default().
	Logger *slog.Logger
}

// watchdogTTR is how long a process may take over a watchdog before it goes to another one.
const watchdogTTR = 60 * time.Second

// Scheduler looks after the watchdog.
type Scheduler struct {
	opts Options
	conn *beanstalk.Conn
	tube tube
	ran  atomic.Bool
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
// what it held. No error of the server and no panic ends it. It may be called once: a second
// call does nothing and returns an error.
func (s *Scheduler) Run(ctx context.Context) error {
	if s.ran.Swap(true) {
		return errors.New("scheduler: Run was called before")
	}
	defer func() { _ = s.conn.Close() }() // always nil
	stop := context.AfterFunc(ctx, s.conn.Interrupt)
	defer stop()
	for ctx.Err() == nil {
		if err := s.turn(ctx); err != nil && ctx.Err() == nil {
			s.logFailure(ctx, err)
			// What it may hold goes back, for whoever can do better.
			s.tube.Disconnect()
			wait(ctx, errorPause)
		}
	}
	return nil
}

// logFailure logs why a turn failed. A panic is a mistake in a program, so it is an error and comes with its stack.
func (s *Scheduler) logFailure(ctx context.Context, err error) {
	level, attrs := slog.LevelWarn, []slog.Attr{slog.String("tube", s.opts.Tube), slog.Any("error", err)}
	if p := new(panicError); errors.As(err, &p) {
		level, attrs = slog.LevelError, append(attrs, slog.String("stack", string(p.stack)))
	}
	s.opts.Logger.LogAttrs(ctx, level, fmt.Sprintf("watchdog: turn failed, trying again in %v", errorPause), attrs...)
}

// panicError is a panic during a turn.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// turn waits for a watchdog and rearms it, or arms one if there is none.
func (s *Scheduler) turn(ctx context.Context) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &panicError{value, debug.Stack()}
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
