package worker

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/postburner/postburner/retry"
)

// reconnect is how long a consumer waits before it dials again.
var reconnect = retry.Curve{Base: 100 * time.Millisecond, Factor: 2, Max: 30 * time.Second, Jitter: 0.2}

// dialsPerSecond bounds the redials of a pool, so that a large one does not fall on a
// server that has just come back.
const dialsPerSecond = 50

// outage knows which consumers have lost the server, so that the log says so once, not
// once for each consumer and try.
type outage struct {
	pool *Pool

	mu    sync.Mutex // guards what follows
	down  int        // consumers
	since time.Time
	dials *rate.Limiter
}

func (o *outage) lost(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.down++
	if o.down > 1 {
		return
	}
	o.since = time.Now()
	o.pool.opts.Logger.Warn("no connection to the server; its consumers wait and dial again, no job is lost", "error", err)
}

func (o *outage) back() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.down--
	if o.down == 0 {
		o.pool.opts.Logger.Info("all consumers are connected again", "after", time.Since(o.since).Round(time.Millisecond))
	}
}

func (o *outage) limiter() *rate.Limiter {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.dials == nil {
		o.dials = rate.NewLimiter(dialsPerSecond, len(o.pool.consumers))
	}
	return o.dials
}

// redial waits before a dial that follows a failure: see beanstalk.Options.Redial.
func (c *consumer) redial(ctx context.Context, failures int, err error) error {
	if c.down.CompareAndSwap(false, true) {
		c.pool.server.lost(err)
	}
	timer := time.NewTimer(reconnect.Delay(failures))
	defer timer.Stop()
	select {
	case <-timer.C:
		return c.pool.server.limiter().Wait(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// back notes that the server has answered.
func (c *consumer) back() {
	if c.down.Load() && c.down.CompareAndSwap(true, false) {
		c.pool.server.back()
	}
}

// trouble is a time in which the server cannot store a failed job.
type trouble struct {
	mu       sync.Mutex // guards what follows
	until    time.Time
	failures int
}

// troubleCurve is how long no job is reserved after the server could not store one.
var troubleCurve = retry.Curve{Base: 5 * time.Second, Factor: 2, Max: time.Minute, Jitter: 0.2}

// troubleForgotten is how long the server has to do well before a new trouble counts as the first.
const troubleForgotten = 5 * time.Minute

// begin starts a pause, unless one is on, and tells how long it is.
func (t *trouble) begin(now time.Time, tell func(wait time.Duration)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Before(t.until) {
		return
	}
	if now.Sub(t.until) > troubleForgotten {
		t.failures = 0
	}
	t.failures++
	wait := troubleCurve.Delay(t.failures)
	t.until = now.Add(wait)
	tell(wait)
}

// left returns how long the pause goes on.
func (t *trouble) left(now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.until.Sub(now)
}
