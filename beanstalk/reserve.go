package beanstalk

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	gobeanstalk "github.com/beanstalkd/go-beanstalk"
)

// Job is a reserved job. It belongs to the connection that reserved it: once that is
// gone, commands on it answer ErrJobLost without asking the server, since the job may be
// another's by then.
type Job struct {
	ID   uint64
	Body []byte // the caller's to keep

	epoch uint64
}

// Connection numbers the connection that reserved the job: a Conn's first is 1, its next 2.
func (j *Job) Connection() uint64 { return j.epoch }

// Reserve waits up to timeout for a job, in whole seconds, rounded up; 0 polls. Beside
// what any command answers: ErrTimeout, ErrDeadlineSoon, and ErrInterrupted once
// Interrupt has been called. A context that can end costs a reserve about a
// microsecond; callers in a hurry pass one that cannot, and use Interrupt.
func (c *Conn) Reserve(ctx context.Context, timeout time.Duration) (*Job, error) {
	const op = "reserve"
	if err := c.acquire(ctx); err != nil {
		return nil, c.failed(op, err)
	}
	defer c.release()
	l, err := c.connect(ctx, true)
	if err != nil {
		return nil, c.failed(op, err)
	}
	return c.reserveOn(ctx, l, timeout, func() error {
		l.out = appendReserve(l.out[:0], timeout)
		_, err := l.Write(l.out)
		return err
	})
}

// DeleteAndReserve deletes done and reserves the next job with both commands in one
// write. deleted is the outcome of the delete, err that of the reserve, and each stands
// alone: the reply to the delete is awaited even if Interrupt is called meanwhile. While
// Interrupt forbids reserves it is a plain delete, and err is ErrInterrupted.
func (c *Conn) DeleteAndReserve(ctx context.Context, done *Job, timeout time.Duration) (next *Job, deleted, err error) {
	if err := c.acquire(ctx); err != nil {
		return nil, c.failed(deleteOp(done.ID), err), c.failed("reserve", err)
	}
	defer c.release()
	if !c.holds(done) {
		return nil, c.failed(deleteOp(done.ID), ErrJobLost), c.failed("reserve", ErrNotSent)
	}
	l := c.link
	if c.forbidden() || !l.watching {
		return nil, c.deleteOn(ctx, l, done), c.failed("reserve", ErrInterrupted)
	}
	stop := watch(ctx, l)
	err = l.begin(wait(timeout) + c.opts.ReplyTimeout)
	if err == nil {
		l.out = appendReserve(appendDelete(l.out[:0], done.ID), timeout)
		_, err = l.Write(l.out)
	}
	var reply error
	if err == nil {
		reply, err = l.readReply("DELETED")
	}
	stop()
	if err != nil {
		err = c.lose(ctx, err, l.arrived())
		return nil, c.failed(deleteOp(done.ID), err), c.failed("reserve", err)
	}
	c.failures = 0
	if reply != nil {
		deleted = c.failed(deleteOp(done.ID), reply)
	}
	next, err = c.reserveOn(ctx, l, timeout, nil)
	return next, deleted, err
}

// forbidden reports whether Interrupt is in force.
func (c *Conn) forbidden() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.interrupted
}

// reserveOn waits for the answer to a reserve. send sends it; nil if it is under way already.
func (c *Conn) reserveOn(ctx context.Context, l *link, timeout time.Duration, send func() error) (*Job, error) {
	const op = "reserve"
	c.mu.Lock()
	if c.interrupted {
		c.mu.Unlock()
		if send == nil { // the answer to a reserve that was sent can only be refused by hanging up
			l.abandon()
			c.drop(nil)
		}
		return nil, c.failed(op, ErrInterrupted)
	}
	c.reserving = l
	c.mu.Unlock()

	stop := watch(ctx, l)
	job, err := c.awaitJob(l, timeout, send)
	stop()

	c.mu.Lock()
	c.reserving = nil
	interrupted := c.interrupted && l.gone.Load()
	c.mu.Unlock()
	switch {
	case interrupted:
		c.drop(nil)
		return nil, c.failed(op, ErrInterrupted)
	case err == nil && !l.gone.Load():
		c.failures = 0
		return job, nil
	case err == nil: // handed over as the connection was closed from here: it has gone back
		err = closedFromHere(ctx)
	}
	for _, known := range replies {
		if errors.Is(err, known) {
			c.failures = 0
			return nil, c.failed(op, err)
		}
	}
	return nil, c.failed(op, c.lose(ctx, err, l.arrived()))
}

// closedFromHere is why a connection was closed under a reserve that had its answer.
func closedFromHere(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.New("connection closed from here")
}

func (c *Conn) awaitJob(l *link, timeout time.Duration, send func() error) (*Job, error) {
	if send != nil {
		if err := l.begin(wait(timeout) + c.opts.ReplyTimeout); err != nil {
			return nil, err
		}
		if !l.watching {
			return c.watchAndReserve(l, timeout)
		}
		if err := send(); err != nil {
			return nil, err
		}
	}
	return l.readJob()
}

// watchAndReserve is the first reserve of a link: go-beanstalk's tube set sends the
// watch and ignore commands ahead of it.
func (c *Conn) watchAndReserve(l *link, timeout time.Duration) (*Job, error) {
	id, body, err := gobeanstalk.NewTubeSet(l.library, c.opts.Tubes...).Reserve(wait(timeout))
	inStep, translated := fromLibrary(err)
	l.watching = err == nil || inStep
	if err != nil {
		return nil, translated
	}
	return &Job{ID: id, Body: body, epoch: l.epoch}, nil
}

// wait rounds up to whole seconds, the server's unit.
func wait(d time.Duration) time.Duration {
	return (max(d, 0) + time.Second - 1).Truncate(time.Second)
}

func appendReserve(out []byte, timeout time.Duration) []byte {
	out = append(out, "reserve-with-timeout "...)
	out = strconv.AppendInt(out, int64(wait(timeout)/time.Second), 10)
	return append(out, "\r\n"...)
}

func appendDelete(out []byte, id uint64) []byte {
	out = append(out, "delete "...)
	out = strconv.AppendUint(out, id, 10)
	return append(out, "\r\n"...)
}

func deleteOp(id uint64) string { return fmt.Sprint("delete job ", id) }
