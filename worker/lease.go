package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postburner/postburner/job"
)

const (
	// keepAfter is how old an execution is before its lease is looked after. A TTR is a second at least.
	keepAfter = 400 * time.Millisecond
	// watchTick is how often executions are looked at.
	watchTick = 100 * time.Millisecond
	// maxTouch bounds the time between two touches, and with it how long a handler may run on
	// after its connection has died unnoticed.
	maxTouch = 15 * time.Second
)

// watchExecutions looks after the executions that are no longer short, until ctx ends.
// Short jobs cost it nothing, and it costs them nothing. It does no I/O itself, so that
// a slow server delays no other lease.
func (p *Pool) watchExecutions(ctx context.Context) {
	tick := time.NewTicker(watchTick)
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
				if returned := x.keep(); returned != nil {
					p.keepers.Go(func() { x.keepLease(ctx, returned) })
				}
				if !c.conn.Holds(x.raw) { // sooner than the next touch would tell
					x.end(fmt.Errorf("%w: the server has closed the connection", job.ErrLeaseLost))
				}
				if cause := x.becomesStuck(now, p.opts.StuckAfter); cause != nil {
					p.keepers.Go(func() { p.settleStuck(x, cause) })
				}
			}
		}
	}
}

// keep claims the execution for a keeper, once; nil if it has one or its handler has returned.
func (x *execution) keep() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.kept || x.returned {
		return nil
	}
	x.kept = true
	if x.returnedC == nil {
		x.returnedC = make(chan struct{})
	}
	return x.returnedC
}

// keepLease touches the job until its handler has returned, its lease is lost or ctx
// ends. The connection is idle meanwhile, but for the handler asking for its attempt.
func (x *execution) keepLease(ctx context.Context, returned <-chan struct{}) {
	conn := x.consumer.conn
	every := time.Duration(0)
	for !x.isStuck() {
		// Touch first: it alone is refused once the connection that holds the job is gone.
		err := conn.Touch(context.Background(), x.raw)
		if err == nil && every == 0 {
			stats, statsErr := conn.StatsHeld(context.Background(), x.raw)
			err = statsErr
			every = min(stats.TTR/3, maxTouch)
		}
		if err != nil {
			x.end(fmt.Errorf("%w: %w", job.ErrLeaseLost, err))
			return
		}
		timer := time.NewTimer(every)
		select {
		case <-timer.C:
			continue
		case <-returned:
		case <-ctx.Done():
		}
		timer.Stop()
		return
	}
}

// becomesStuck reports, once, that the handler has ignored the end of its context for too
// long: its job is to be settled without it. It returns why the context had ended.
func (x *execution) becomesStuck(now time.Time, after time.Duration) (cause error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.cause == nil && x.ctx.Err() != nil { // its deadline
		x.cause, x.cancelledAt = context.Cause(x.ctx), now
	}
	if x.cause == nil || x.returned || x.stuck || now.Sub(x.cancelledAt) <= after {
		return nil
	}
	x.stuck = true
	return x.cause
}

// settleStuck settles the job of a stuck handler. Goroutines cannot be ended; processes
// can, and whoever runs this one is told.
func (p *Pool) settleStuck(x *execution, cause error) {
	p.counts.stuck.Add(1)
	x.job.Log().Error("handler is stuck: its context has ended and it still runs; the process has to be replaced", "after", p.opts.StuckAfter, "cause", cause, "stack", x.consumer.stack())
	if errors.Is(cause, job.ErrLeaseLost) {
		x.consumer.reportLost(x, cause)
	} else {
		x.consumer.fail(x, &stuckError{cause})
	}
	if p.opts.Stuck != nil {
		defer p.recoverCallback("Options.Stuck")
		p.opts.Stuck()
	}
}

// stuckError is the failed attempt of a handler that ignored its ended context.
type stuckError struct{ cause error }

func (e *stuckError) Error() string {
	return "the handler ignored the end of its context: " + e.cause.Error()
}
func (e *stuckError) Unwrap() error { return e.cause }
