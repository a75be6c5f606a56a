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
		c.pool.outage.lost(err)
	}
	timer := time.NewTimer(reconnect.Delay(failures))
	defer timer.Stop()
	select {
	case <-timer.C:
		return c.pool.outage.limiter().Wait(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// back notes that the server has answered.
func (c *consumer) back() {
	if c.down.Load() && c.down.CompareAndSwap(true, false) {
		c.pool.outage.back()
	}
}
