package scheduler

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/postburner/postburner/beanstalk"
)

// ensure sees to it that there is a watchdog, and that duplicates meet. It is called when none has been ready for a while.
func (s *Scheduler) ensure(ctx context.Context) error {
	stats, err := s.tube.StatsTube(ctx, s.opts.Tube)
	if err != nil && !errors.Is(err, beanstalk.ErrNotFound) {
		return err
	}
	switch n := stats.Ready + stats.Reserved + stats.Delayed; {
	case n == 0: // buried jobs are nobody's watchdog
		if err := s.put(ctx, watchdog{Generation: 1}); err != nil {
			return err
		}
		s.opts.Logger.Info("watchdog armed", "tube", s.opts.Tube, "interval", s.opts.Interval)
		return nil
	case stats.Delayed > 1:
		return s.wake(ctx, stats.Delayed)
	case n == 1 && stats.Delayed == 1:
		return s.hurry(ctx)
	}
	return nil
}

// wake makes up to n delayed watchdogs ready, so that whoever reserves one finds the others.
func (s *Scheduler) wake(ctx context.Context, n int) error {
	for range n {
		id, _, err := s.tube.PeekDelayed(ctx, s.opts.Tube)
		if errors.Is(err, beanstalk.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		// By its id: `kick` on the tube would take buried jobs first.
		if err := s.tube.KickJob(ctx, id); err != nil && !errors.Is(err, beanstalk.ErrNotFound) {
			return err
		}
	}
	return nil
}

// hurry wakes a watchdog that sleeps longer than the interval, which has been lowered since.
func (s *Scheduler) hurry(ctx context.Context) error {
	id, _, err := s.tube.PeekDelayed(ctx, s.opts.Tube)
	if err != nil {
		return ignoreGone(err)
	}
	stats, err := s.tube.StatsJob(ctx, id)
	if err != nil {
		return ignoreGone(err)
	}
	if stats.State != "delayed" || stats.TimeLeft <= s.opts.Interval {
		return nil
	}
	return ignoreGone(s.tube.KickJob(ctx, id))
}

// ignoreGone forgives that a watchdog has moved on meanwhile.
func ignoreGone(err error) error {
	if errors.Is(err, beanstalk.ErrNotFound) {
		return nil
	}
	return err
}

// holding is a watchdog in hand.
type holding struct {
	job   *beanstalk.Job
	state watchdog
}

// collect gathers all watchdogs there are, beginning with one in hand, and acts on
// them together, or gives them back if another process holds one too.
func (s *Scheduler) collect(ctx context.Context, first *beanstalk.Job) error {
	var held []holding
	take := func(j *beanstalk.Job) error {
		state, err := parseWatchdog(j.Body)
		if errors.Is(err, errForeign) {
			s.opts.Logger.Error("a foreign job in the scheduler tube is buried; name another tube with scheduler_queue if others use this one", "tube", s.opts.Tube, "beanstalkd_id", j.ID, "error", err)
			return s.tube.Bury(ctx, j, s.opts.Priority)
		}
		if err != nil {
			s.opts.Logger.Error("the state of a watchdog is of no use; it starts afresh", "beanstalkd_id", j.ID, "error", err)
		}
		held = append(held, holding{j, state})
		return nil
	}
	if err := take(first); err != nil || len(held) == 0 {
		return err
	}
	for {
		stats, err := s.tube.StatsTube(ctx, s.opts.Tube)
		if err != nil {
			return err
		}
		switch {
		case stats.Reserved > len(held):
			return s.stepBack(ctx, held)
		case stats.Delayed > 0:
			if err := s.wake(ctx, stats.Delayed); err != nil {
				return err
			}
		case stats.Ready == 0:
			return s.act(ctx, held)
		}
		j, err := s.tube.Reserve(ctx, 0)
		switch {
		case errors.Is(err, beanstalk.ErrTimeout): // another process has been quicker; the counts tell
		case err != nil:
			return err
		default:
			if err := take(j); err != nil {
				return err
			}
		}
	}
}

// stepBack gives everything back for a moment, a different one for each process, so that one of them finds all together.
func (s *Scheduler) stepBack(ctx context.Context, held []holding) error {
	for _, h := range held {
		delay := time.Second + time.Duration(rand.Int64N(int64(3*time.Second)))
		if err := s.tube.Release(ctx, h.job, s.opts.Priority, delay); err != nil {
			return ignoreGone(err)
		}
	}
	return nil
}

// act does what is due and replaces what is held by the next watchdog: put first, so that there is never none.
func (s *Scheduler) act(ctx context.Context, held []holding) error {
	latest := held[0]
	for _, h := range held[1:] {
		if h.state.Generation > latest.state.Generation {
			latest = h
		}
	}
	if len(held) > 1 {
		s.opts.Logger.Info("duplicate watchdogs merged", "tube", s.opts.Tube, "watchdogs", len(held), "generation", latest.state.Generation)
	}
	next := latest.state
	next.Generation++
	keep := uint64(0)
	if err := s.put(ctx, next); err != nil {
		if errors.Is(err, beanstalk.ErrUnknownOutcome) {
			return err // the connection is gone, what was held has gone back
		}
		// A server that takes no jobs, while it drains or has no memory, still lets one go to sleep again.
		s.opts.Logger.Warn("the next watchdog could not be put; this one stays", "error", err)
		if err := s.tube.Release(ctx, latest.job, s.opts.Priority, s.opts.Interval); err != nil {
			return err
		}
		keep = latest.job.ID
	}
	var problems []error
	for _, h := range held {
		if h.job.ID == keep {
			continue
		}
		if err := ignoreGone(s.tube.Delete(ctx, h.job)); err != nil {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

func (s *Scheduler) put(ctx context.Context, w watchdog) error {
	w.Interval = s.opts.Interval
	body, err := w.encode()
	if err != nil {
		return fmt.Errorf("encode the watchdog: %w", err)
	}
	_, err = s.tube.Put(ctx, beanstalk.Put{Tube: s.opts.Tube, Body: body, Priority: s.opts.Priority, Delay: s.opts.Interval, TTR: watchdogTTR})
	return err
}
