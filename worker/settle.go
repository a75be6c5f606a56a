package worker

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/job"
)

// settle does what the handler's result asks for.
func (c *consumer) settle(x *execution, err, cause error) {
	switch {
	case errors.Is(cause, job.ErrLeaseLost):
		c.kickMarked(x)
		c.reportLost(x, cause)
	case err == nil:
		c.finished = x // deleted in one write with the next reserve
	case errors.Is(cause, job.ErrShutdown):
		c.handBack(x, err)
	default:
		c.fail(x, err)
	}
}

// handBack makes the job ready again at once, with no attempt counted.
func (c *consumer) handBack(x *execution, err error) {
	c.returnToTube(x.raw)
	c.reportInterrupted(x, err)
}

// returnToTube makes a reserved job ready again by closing the connection, which needs
// neither memory nor disk of the server. Only a job that has been given back like that so often
// that it comes to look like poison is buried and kicked instead, which leaves its trace.
func (c *consumer) returnToTube(raw *beanstalk.Job) {
	limit := c.pool.opts.PoisonReserves / 2
	if limit == 0 || c.pool.pause.remaining(time.Now()) > 0 {
		c.conn.Disconnect()
		return
	}
	stats, err := c.conn.StatsHeld(context.Background(), raw)
	if err != nil || unexplained(stats) < limit {
		c.conn.Disconnect()
		return
	}
	err = c.conn.HandBack(context.Background(), raw, stats.Priority)
	c.conn.Disconnect()
	if err == nil || errors.Is(err, beanstalk.ErrJobLost) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), recoverFor)
	defer cancel()
	if kickErr := c.conn.KickJob(ctx, raw.ID); kickErr != nil && !errors.Is(kickErr, beanstalk.ErrNotFound) { // not found: it is ready, as it should be
		c.pool.opts.Logger.Error("a job may be left buried: kick it", "beanstalkd_id", raw.ID, "error", errors.Join(err, kickErr))
	}
}

func (c *consumer) reportInterrupted(x *execution, err error) {
	c.pool.counts.interrupted.Add(1)
	e := x.event(EventInterrupted)
	e.Err = err
	c.pool.observe(e)
}

// fail settles a failed attempt.
func (c *consumer) fail(x *execution, err error) {
	p := c.pool
	if p.pause.remaining(time.Now()) > 0 { // a release or bury now would need disk that the server does not have
		c.conn.Disconnect()
		c.reportInterrupted(x, err)
		return
	}
	ctx := context.Background()
	// Once the connection is gone the job has gone back by itself; asked over another one,
	// the answer would be about somebody else's attempt. Touch is refused then.
	if lostErr := c.conn.Touch(ctx, x.raw); lostErr != nil {
		c.reportLost(x, lostErr)
		return
	}
	stats, statsErr := c.conn.StatsHeld(ctx, x.raw)
	if statsErr != nil {
		c.reportLost(x, statsErr)
		return
	}
	attempt := attemptOf(x.job.Envelope, stats)
	d := decide(job.VerdictOf(err), x.job.Envelope, attempt, p.opts.Retry)
	c.carryOut(x, d, stats, err)
}

// carryOut does what was decided and tells of it.
func (c *consumer) carryOut(x *execution, d decision, stats beanstalk.JobStats, failure error) {
	p := c.pool
	ctx := context.Background()
	var err error
	var counter *atomic.Uint64
	var e Event
	switch d.action {
	case job.ActionRetry:
		e, counter = x.event(EventRetry), &p.counts.retried
		err = c.conn.Release(ctx, x.raw, stats.Priority, d.delay)
	case job.ActionBury:
		e, counter = x.event(EventBury), &p.counts.buried
		err = c.conn.Bury(ctx, x.raw, stats.Priority)
	default:
		e, counter = x.event(EventDiscard), &p.counts.discarded
		err = c.conn.Delete(ctx, x.raw)
	}
	if err == nil {
		counter.Add(1)
		e.Tube, e.Attempt, e.Wait, e.Reason, e.Err = stats.Tube, attemptOf(x.job.Envelope, stats), d.delay, d.reason, failure
		p.observe(e)
		return
	}
	if errors.Is(err, beanstalk.ErrOutOfMemory) || errors.Is(err, beanstalk.ErrInternal) {
		p.pauseStore("store a failed job", err, "job_id", x.job.ID, "beanstalkd_id", x.raw.ID)
		c.conn.Disconnect()
	}
	c.reportLost(x, err)
}

// reportLost tells that a job is no longer this consumer's: it may run again.
func (c *consumer) reportLost(x *execution, err error) {
	c.pool.counts.lost.Add(1)
	e := x.event(EventLost)
	e.Err = err
	c.pool.observe(e)
}

// settleDelete settles a job that is done, given what its deletion came to.
func (c *consumer) settleDelete(x *execution, err error) {
	p := c.pool
	switch {
	case err == nil:
		p.counts.done.Add(1)
	case errors.Is(err, beanstalk.ErrNotFound): // its TTR ran out, or someone else deleted it
		p.counts.possibleDuplicates.Add(1)
		c.reportLost(x, err)
	case c.deleteElsewhere(x):
		p.counts.done.Add(1)
	default:
		p.unknown.remember(x.raw.ID, x.job.ID)
		p.counts.possibleDuplicates.Add(1)
		c.reportLost(x, err)
	}
}

// discardExpired discards a job that was reserved for the first time after it had
// expired. It reports whether the job needs no handler any more.
func (c *consumer) discardExpired(x *execution) bool {
	stats, err := c.conn.StatsHeld(context.Background(), x.raw)
	if err != nil {
		c.reportLost(x, err)
		return true
	}
	if stats.Reserves > 1 {
		return false
	}
	reason := "it expired at " + x.job.ExpiresAt.Format(time.RFC3339) + " before it was run"
	c.carryOut(x, decision{action: job.ActionDiscard, reason: reason}, stats, nil)
	return true
}

// buryMalformed buries a job whose body cannot be decoded.
func (c *consumer) buryMalformed(raw *beanstalk.Job, err error) {
	x := &execution{consumer: c, raw: raw}
	x.job.Envelope, x.job.BeanstalkID = &job.Envelope{}, raw.ID
	stats, statsErr := c.conn.StatsHeld(context.Background(), raw)
	if statsErr != nil {
		c.reportLost(x, statsErr)
		return
	}
	c.carryOut(x, decision{action: job.ActionBury, reason: "its body is no job"}, stats, err)
}
