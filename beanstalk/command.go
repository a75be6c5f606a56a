package beanstalk

import (
	"context"
	"errors"
	"fmt"
)

// run gives f the live link and its turn on it, with the deadline of the reply set.
// f's error decides about the link: an error reply leaves it in step, anything else loses it.
func (c *Conn) run(ctx context.Context, op string, f func(l *link) error) error {
	if err := c.acquire(ctx); err != nil {
		return c.failed(op, err)
	}
	defer c.release()
	l, err := c.connect(ctx, false)
	if err != nil {
		return c.failed(op, err)
	}
	return c.on(ctx, l, op, f)
}

// runHeld is run for a command on a job that this connection must still hold.
func (c *Conn) runHeld(ctx context.Context, j *Job, op string, f func(l *link) error) error {
	if err := c.acquire(ctx); err != nil {
		return c.failed(op, err)
	}
	defer c.release()
	if !c.holds(j) {
		return c.failed(op, ErrJobLost)
	}
	return c.on(ctx, c.link, op, f)
}

// holds reports whether the job's connection lives. It is called with the turn.
func (c *Conn) holds(j *Job) bool {
	return c.link != nil && c.link.epoch == j.epoch && !c.link.gone.Load()
}

func (c *Conn) on(ctx context.Context, l *link, op string, f func(l *link) error) error {
	if ctx.Err() != nil {
		return c.failed(op, notSent(context.Cause(ctx)))
	}
	stop := watch(ctx, l)
	err := l.begin(c.opts.ReplyTimeout)
	if err == nil {
		err = f(l)
	}
	stop()
	if err == nil {
		c.failures = 0
		return nil
	}
	inStep, translated := fromLibrary(err)
	if inStep {
		c.failures = 0
		return c.failed(op, translated)
	}
	return c.failed(op, c.lose(ctx, translated, l.arrived()))
}

// watch closes the link when ctx ends before stop is called. A context that cannot end costs nothing.
func watch(ctx context.Context, l *link) (stop func() bool) {
	if ctx.Done() == nil {
		return func() bool { return true }
	}
	return context.AfterFunc(ctx, l.abandon)
}

// lose drops the link after err. arrived says that the command may have been carried out.
func (c *Conn) lose(ctx context.Context, err error, arrived bool) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	} else if c.isClosed() {
		err = ErrClosed
	}
	c.drop(err)
	if arrived {
		return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	return notSent(err)
}

func (c *Conn) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// failed wraps err, once.
func (c *Conn) failed(op string, err error) error {
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	return &Error{Op: op, Addr: c.server.address, Err: err}
}
