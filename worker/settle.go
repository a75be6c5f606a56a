package worker

import (
	"context"
	"errors"
	"time"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/job"
)

// settle does what the handler's result asks for.
func (c *consumer) settle(x *execution, err error, why cause) {
	switch {
	case why == causeLeaseLost:
		c.lost(x, job.ErrLeaseLost)
	case err == nil:
		c.finished = x // deleted in one write with the next reserve
	case why == causeShutdown:
		c.conn.Disconnect() // ready again at once, no attempt counted
		c.pool.counts.interrupted.Add(1)
		c.pool.observe(x.event(EventInterrupted))
	default:
		c.fail(x, err)
	}
}

// fail settles a failed attempt.
func (c *consumer) fail(x *execution, err error) {
	p := c.pool
	if p.trouble.left(time.Now()) > 0 { // a release or bury now would need disk that the server does not have
		c.conn.Disconnect()
		p.counts.interrupted.Add(1)
		e := x.event(EventInterrupted)
		e.Err = err
		p.observe(e)
		return
	}
	ctx := context.Background()
	// Once the connection is gone the job has gone back by itself; asked over another one,
	// the answer would be about somebody else's attempt. Touch is refused then.
	if lostErr := c.conn.Touch(ctx, x.raw); lostErr != nil {
		c.lost(x, lostErr)
		return
	}
	stats, statsErr := c.conn.StatsJob(ctx, x.raw.ID)
	if statsErr != nil {
		c.lost(x, statsErr)
		return
	}
	x.job.Tube = stats.Tube
	attempt := attemptOf(x.job.Envelope, stats)
	d := decide(job.VerdictOf(err), x.job.Envelope, attempt, p.opts.Retry)
	e := x.event(map[job.Action]EventType{job.ActionRetry: EventRetry, job.ActionDiscard: EventDiscard, job.ActionBury: EventBury}[d.action])
	e.Attempt, e.Wait, e.Reason, e.Err = attempt, d.delay, d.reason, err
	c.carryOut(x, d, stats.Priority, e)
}

// carryOut does what was decided and tells of it.
func (c *consumer) carryOut(x *execution, d decision, pri uint32, e Event) {
	p := c.pool
	ctx := context.Background()
	var err error
	switch d.action {
	case job.ActionRetry:
		err = c.conn.Release(ctx, x.raw, pri, d.delay)
	case job.ActionBury:
		err = c.conn.Bury(ctx, x.raw, pri)
	default:
		err = c.conn.Delete(ctx, x.raw)
	}
	switch {
	case err == nil:
		map[job.Action]func(){
			job.ActionRetry:   func() { p.counts.retried.Add(1) },
			job.ActionBury:    func() { p.counts.buried.Add(1) },
			job.ActionDiscard: func() { p.counts.discarded.Add(1) },
		}[d.action]()
		p.observe(e)
	case errors.Is(err, beanstalk.ErrOutOfMemory), errors.Is(err, beanstalk.ErrInternal):
		p.trouble.begin(time.Now(), func(wait time.Duration) {
			p.opts.Logger.Error("the server could not store a failed job; no jobs are reserved for a while. Free memory, or disk for its binlog; restart it to get the job back",
				"error", err, "job_id", x.job.ID, "beanstalkd_id", x.raw.ID, "wait", wait)
		})
		c.conn.Disconnect()
		c.lost(x, err)
	default:
		c.lost(x, err)
	}
}

// lost tells that a job is no longer this consumer's: it may run again.
func (c *consumer) lost(x *execution, err error) {
	c.pool.counts.lost.Add(1)
	e := x.event(EventLost)
	e.Err = err
	c.pool.observe(e)
}

// deleted settles a job that is done, given what its deletion came to.
func (c *consumer) deleted(x *execution, err error) {
	p := c.pool
	switch {
	case err == nil:
		p.counts.done.Add(1)
	case errors.Is(err, beanstalk.ErrNotFound): // its TTR ran out, or someone else deleted it
		p.counts.possibleDuplicates.Add(1)
		c.lost(x, err)
	case c.deleteElsewhere(x):
		p.counts.done.Add(1)
	default:
		p.unknown.remember(x.raw.ID, x.job.ID)
		p.counts.possibleDuplicates.Add(1)
		c.lost(x, err)
	}
}

// expired discards a job that was reserved for the first time after it had expired.
func (c *consumer) expired(x *execution) bool {
	stats, err := c.conn.StatsJob(context.Background(), x.raw.ID)
	if err != nil {
		c.lost(x, err)
		return true
	}
	if stats.Reserves > 1 {
		return false
	}
	e := x.event(EventDiscard)
	e.Tube, e.Attempt, e.Reason = stats.Tube, attemptOf(x.job.Envelope, stats), "it expired at "+x.job.ExpiresAt.Format(time.RFC3339)+" before it was run"
	c.carryOut(x, decision{action: job.ActionDiscard}, stats.Priority, e)
	return true
}

// buryUnread sets a body aside that is no job.
func (c *consumer) buryUnread(raw *beanstalk.Job, err error) {
	x := &execution{consumer: c, raw: raw}
	x.job.Envelope, x.job.BeanstalkID = &job.Envelope{}, raw.ID
	stats, statsErr := c.conn.StatsJob(context.Background(), raw.ID)
	if statsErr != nil {
		c.lost(x, statsErr)
		return
	}
	x.job.Tube = stats.Tube
	e := x.event(EventBury)
	e.Attempt, e.Reason, e.Err = attemptOf(x.job.Envelope, stats), "its body is no job", err
	c.carryOut(x, decision{action: job.ActionBury}, stats.Priority, e)
}
