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
	switch {
	case stats.Ready+stats.Reserved > 0: // somebody is about to rearm it
		return nil
	case stats.Delayed == 0: // buried jobs are nobody's watchdog
		if err := s.put(ctx, watchdog{Generation: 1}); err != nil {
			return err
		}
		s.opts.Logger.Info("watchdog armed", "tube", s.opts.Tube, "interval", s.opts.Interval)
		return nil
	}
	id, _, err := s.tube.PeekDelayed(ctx, s.opts.Tube)
	if err != nil {
		return ignoreGone(err)
	}
	if stats.Delayed == 1 {
		sleeper, err := s.tube.StatsJob(ctx, id)
		if err != nil {
			return ignoreGone(err)
		}
		if sleeper.State != "delayed" || sleeper.TimeLeft <= s.opts.Interval {
			return nil
		} // else the interval has been lowered since
	}
	// One is woken, by its id since `kick` would take buried jobs first; whoever reserves it finds the others.
	return ignoreGone(s.tube.KickJob(ctx, id))
}

// ignoreGone forgives that a watchdog has moved on meanwhile.
func ignoreGone(err error) error {
	if errors.Is(err, beanstalk.ErrNotFound) {
		return nil
	}
	return err
}

// holding is a watchdog that was seen, in hand or asleep.
type holding struct {
	job   *beanstalk.Job
	state watchdog
}

// outranks says which of two watchdogs stays: the one that was put later. It is a total
// order that every process sees alike, so the one that outranks all is deleted by nobody but the
// process that has put its successor.
func (h holding) outranks(other holding) bool {
	if h.state.Generation != other.state.Generation {
		return h.state.Generation > other.state.Generation
	}
	return h.job.ID > other.job.ID
}

// read tells what a job in the scheduler tube is; foreign says that it is no watchdog.
func (s *Scheduler) read(j *beanstalk.Job) (h holding, foreign error) {
	state, err := parseWatchdog(j.Body)
	if errors.Is(err, errForeign) {
		return holding{}, err
	}
	if err != nil {
		s.opts.Logger.Error("the watchdog's state is unreadable; starting with an empty one", "beanstalkd_id", j.ID, "error", err)
	}
	return holding{j, state}, nil
}

// bury sets aside a job that does not belong here.
func (s *Scheduler) bury(ctx context.Context, j *beanstalk.Job, reason error) error {
	s.opts.Logger.Error("a foreign job in the scheduler tube is buried; give the scheduler a tube that nobody else uses", "tube", s.opts.Tube, "beanstalkd_id", j.ID, "error", reason)
	return s.tube.Bury(ctx, j, s.opts.Priority)
}

// collect deletes every watchdog but the one that outranks the others, beginning with
// one in hand, and rearms that one. If another process holds one too, it gives its own back instead.
func (s *Scheduler) collect(ctx context.Context, first *beanstalk.Job) error {
	held, foreign := s.read(first)
	if foreign != nil {
		return s.bury(ctx, first, foreign)
	}
	for {
		stats, err := s.tube.StatsTube(ctx, s.opts.Tube)
		if err != nil {
			return err
		}
		switch {
		case stats.Delayed > 0:
			stays, err := s.outrankSleeper(ctx, held)
			if err != nil || !stays {
				return err
			}
		case stats.Ready > 0:
			if held, err = s.takeAnother(ctx, held); err != nil {
				return err
			}
		case stats.Reserved > 1:
			// A moment of its own for each process, so that one of them finds the other's asleep.
			return ignoreGone(s.tube.Release(ctx, held.job, s.opts.Priority, time.Second+rand.N(3*time.Second)))
		default:
			return s.rearm(ctx, held)
		}
	}
}

// outrankSleeper settles which of the one in hand and the next that sleeps is to stay; it reports whether the one in hand is.
func (s *Scheduler) outrankSleeper(ctx context.Context, held holding) (stays bool, err error) {
	id, body, err := s.tube.PeekDelayed(ctx, s.opts.Tube)
	if err != nil {
		return true, ignoreGone(err)
	}
	sleeper, foreign := s.read(&beanstalk.Job{ID: id, Body: body})
	if foreign != nil {
		return true, ignoreGone(s.tube.KickJob(ctx, id)) // whoever reserves it buries it
	}
	if held.outranks(sleeper) {
		s.opts.Logger.Info("duplicate watchdog deleted", "tube", s.opts.Tube, "beanstalkd_id", id, "generation", sleeper.state.Generation)
		return true, ignoreGone(s.tube.DeleteID(ctx, id))
	}
	s.opts.Logger.Info("duplicate watchdog deleted", "tube", s.opts.Tube, "beanstalkd_id", held.job.ID, "generation", held.state.Generation)
	return false, ignoreGone(s.tube.Delete(ctx, held.job))
}

// takeAnother reserves another one that is ready, and keeps the one that stays.
func (s *Scheduler) takeAnother(ctx context.Context, held holding) (holding, error) {
	j, err := s.tube.Reserve(ctx, 0)
	if errors.Is(err, beanstalk.ErrTimeout) { // another process has been quicker
		return held, nil
	}
	if err != nil {
		return held, err
	}
	other, foreign := s.read(j)
	if foreign != nil {
		return held, s.bury(ctx, j, foreign)
	}
	if other.outranks(held) {
		held, other = other, held
	}
	s.opts.Logger.Info("duplicate watchdog deleted", "tube", s.opts.Tube, "beanstalkd_id", other.job.ID, "generation", other.state.Generation)
	return held, ignoreGone(s.tube.Delete(ctx, other.job))
}

// rearm replaces the watchdog by the next one: put first, so that there is never none. It is
// where schedules will act, since only the one process that holds a watchdog comes here.
func (s *Scheduler) rearm(ctx context.Context, held holding) error {
	next := held.state
	next.Generation++
	err := s.put(ctx, next)
	switch {
	case err == nil:
		return ignoreGone(s.tube.Delete(ctx, held.job))
	case errors.Is(err, beanstalk.ErrUnknownOutcome):
		return err // the connection is gone, what was held has gone back
	}
	// A server that takes no jobs, while it drains or has no memory, still lets one go to sleep again.
	s.opts.Logger.Warn("the next watchdog could not be put; this one stays", "error", err)
	return s.tube.Release(ctx, held.job, s.opts.Priority, s.opts.Interval)
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
