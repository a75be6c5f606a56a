package worker

import (
	"context"
	"time"

	"github.com/postburner/postburner/job"
)

const (
	// keepAfter is how old an execution is before its lease is looked after. A TTR is a second at least.
	keepAfter = 400 * time.Millisecond
	// keeperTick is how often the keeper looks for such executions.
	keeperTick = 100 * time.Millisecond
	// maxTouch bounds the time between two touches, and with it how long a handler may run on
	// after its connection has died unnoticed.
	maxTouch = 15 * time.Second
)

// keepLeases looks after the executions that are no longer short, until ctx ends. Short
// jobs cost it nothing, and it costs them nothing.
func (p *Pool) keepLeases(ctx context.Context) {
	tick := time.NewTicker(keeperTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			for _, c := range p.consumers {
				x := c.current.Load()
				if x == nil || now.Sub(x.began) < keepAfter {
					continue
				}
				if over := x.keep(); over != nil {
					go p.keepLease(x, over)
				}
				p.checkStuck(x, now)
			}
		}
	}
}

// keep claims the execution for a keeper, once; nil if it has one or is over.
func (x *execution) keep() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over != nil || x.ended {
		return nil
	}
	x.over = make(chan struct{})
	return x.over
}

// keepLease touches the job until its handler has returned; then the channel over is
// closed. The connection is idle meanwhile but for the handler asking for its attempt.
func (p *Pool) keepLease(x *execution, over <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	conn := x.consumer.conn
	every := time.Duration(0)
	for {
		// Touch first: it alone is refused once the connection that holds the job is gone.
		err := conn.Touch(ctx, x.raw)
		if err == nil && every == 0 {
			stats, statsErr := conn.StatsJob(ctx, x.raw.ID)
			err = statsErr
			every = min(stats.TTR/3, maxTouch)
		}
		if err != nil {
			x.end(causeLeaseLost)
			return
		}
		timer := time.NewTimer(every)
		select {
		case <-over:
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// checkStuck settles the job of a handler that has ignored the end of its context for too
// long. Goroutines cannot be ended; processes can, and whoever runs this one is told.
func (p *Pool) checkStuck(x *execution, now time.Time) {
	x.mu.Lock()
	if x.cause == causeNone && x.ctx.Err() != nil { // its deadline
		x.cause, x.endedAt = causeRuntime, now
	}
	due := x.cause != causeNone && !x.ended && !x.stuck && now.Sub(x.endedAt) > p.opts.StuckAfter
	x.stuck = x.stuck || due
	why := x.cause
	x.mu.Unlock()
	if !due {
		return
	}
	p.counts.stuck.Add(1)
	x.job.Log().Error("handler is stuck: its context has ended and it still runs; the process has to be replaced", "after", p.opts.StuckAfter, "cause", why.err())
	if why == causeLeaseLost {
		x.consumer.lost(x, job.ErrLeaseLost)
	} else {
		x.consumer.fail(x, &stuckError{why.err()})
	}
	if p.opts.Stuck != nil {
		defer p.shrugOff("Options.Stuck")
		p.opts.Stuck()
	}
}

// stuckError is the failed attempt of a handler that ignored its ended context.
type stuckError struct{ cause error }

func (e *stuckError) Error() string {
	return "the handler ignored the end of its context: " + e.cause.Error()
}
func (e *stuckError) Unwrap() error { return e.cause }
