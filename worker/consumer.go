package worker

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/postburner/postburner/beanstalk"
)

// consumer is one goroutine's worth of work: a connection, and at most one job.
type consumer struct {
	pool    *Pool
	number  int
	conn    *beanstalk.Conn
	current atomic.Pointer[execution] // what it runs, for the lease keeper and Stats
	down    atomic.Bool               // it has lost the server and not reached it since

	// What follows is the loop's own.
	finished      *execution // done, its delete still to be sent with the next reserve
	serverID      serverID
	vigilantRound int64 // see poisonGuard
	vigilantJobs  int
}

func newConsumer(p *Pool, number int) (*consumer, error) {
	c := &consumer{pool: p, number: number}
	opts := p.opts.Beanstalk
	opts.Tubes = p.opts.Tubes
	opts.Redial = c.redial
	var err error
	c.conn, err = beanstalk.New(opts)
	return c, err
}

// run consumes until the pool stops. The loop has a goroutine of its own, because a handler
// may end it with runtime.Goexit; then the next one takes over.
func (c *consumer) run() {
	for over := false; !over; {
		ended := make(chan bool, 1)
		go func() {
			finished := false
			defer func() { ended <- finished }()
			c.label()
			c.loop()
			finished = true
		}()
		over = <-ended
	}
}

func (c *consumer) loop() {
	for c.pool.gate.isOpen() {
		if !c.waitForStorePause() || !c.waitForIsolated() {
			continue
		}
		next, err := c.next()
		switch {
		case err == nil:
			c.back()
			c.take(next)
		case errors.Is(err, beanstalk.ErrTimeout):
			c.back()
		case errors.Is(err, beanstalk.ErrDeadlineSoon):
			// This consumer holds no job that it knows of: whatever the server means goes back.
			c.conn.Disconnect()
		case errors.Is(err, beanstalk.ErrOutOfMemory), errors.Is(err, beanstalk.ErrInternal):
			c.pool.pauseStore("hand out jobs", err)
		}
		// Anything else has broken the connection, or interrupted the reserve; the next turn
		// dials, waiting as redial says.
	}
	c.flush()
	<-c.pool.gate.stopped // quiet: stay until the stop
}

// next deletes the job that is done, if there is one, and reserves another.
func (c *consumer) next() (*beanstalk.Job, error) {
	done := c.finished
	if done == nil {
		return c.conn.Reserve(context.Background(), c.pool.opts.ReserveTimeout)
	}
	c.finished = nil
	next, deleted, err := c.conn.DeleteAndReserve(context.Background(), done.raw, c.pool.opts.ReserveTimeout)
	c.settleDelete(done, deleted)
	return next, err
}

// flush deletes the job that is done, with no reserve behind it.
func (c *consumer) flush() {
	if done := c.finished; done != nil {
		c.finished = nil
		c.settleDelete(done, c.conn.Delete(context.Background(), done.raw))
	}
}

// take runs a job that was reserved, or hands it back if no job may start any more.
func (c *consumer) take(raw *beanstalk.Job) {
	ok, last := c.pool.gate.admit()
	if !ok {
		c.returnToTube(raw)
		return
	}
	defer c.pool.gate.leave()
	if last {
		c.pool.recycle()
	}
	c.execute(raw)
}

// waitForIsolated waits while a job runs alone; false says that the pool has stopped meanwhile.
func (c *consumer) waitForIsolated() bool {
	shared := c.pool.gate.isolated()
	if shared == nil {
		return true
	}
	c.flush()
	select {
	case <-shared:
		return true
	case <-c.pool.gate.stopped:
		return false
	}
}

// waitForStorePause waits until the server may be asked for jobs again; false says that the pool has stopped meanwhile.
func (c *consumer) waitForStorePause() bool {
	wait := c.pool.pause.remaining(time.Now())
	if wait <= 0 {
		return true
	}
	c.flush()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.pool.gate.stopped:
		return false
	}
}
