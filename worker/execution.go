package worker

import (
	"context"
	"errors"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/job"
)

// execution is one job in the hands of one consumer, from its reserve to its outcome.
type execution struct {
	consumer *consumer
	raw      *beanstalk.Job
	job      job.Job
	began    time.Time
	ctx      context.Context //nolint:containedctx // it is the handler's, and the keeper ends it
	cancel   context.CancelCauseFunc

	mu      sync.Mutex // guards what follows
	over    chan struct{}
	ended   bool      // the handler has returned
	cause   cause     // why the context was ended, if it was
	endedAt time.Time // when
	stuck   bool      // the handler has ignored that for too long; its job is settled
}

// cause is why a handler's context was ended early.
type cause int

const (
	causeNone cause = iota
	causeShutdown
	causeLeaseLost
	causeRuntime
)

// errMaxRuntime is the cause of a context whose execution took longer than MaxRuntime.
var errMaxRuntime = errors.Join(errors.New("max_runtime is over"), context.DeadlineExceeded)

func (c cause) err() error {
	switch c {
	case causeShutdown:
		return job.ErrShutdown
	case causeLeaseLost:
		return job.ErrLeaseLost
	default:
		return errMaxRuntime
	}
}

// end ends the handler's context, once; a lost lease overrides whatever came before it,
// since it decides that the job is not ours to settle.
func (x *execution) end(why cause) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended || x.cause == causeLeaseLost {
		return
	}
	if x.cause == causeNone {
		x.endedAt = time.Now()
	}
	if x.cause == causeNone || why == causeLeaseLost {
		x.cause = why
	}
	x.cancel(why.err())
}

// finish notes that the handler has returned. It reports why its context had been ended, and whether
// the job was settled without waiting for it.
func (x *execution) finish() (why cause, stuck bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended = true
	if x.over != nil {
		close(x.over)
	}
	return x.cause, x.stuck
}

func (x *execution) isStuck() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.stuck
}

// event is the beginning of every event of this job.
func (x *execution) event(t EventType) Event {
	return Event{Type: t, Kind: x.job.Kind, JobID: x.job.ID, BeanstalkID: x.raw.ID, Tube: x.job.Tube}
}

// execute runs a reserved job and settles it. A handler that ends its goroutine takes the
// consumer's loop with it, but not before its job is settled.
func (c *consumer) execute(raw *beanstalk.Job) {
	p := c.pool
	c.server.learn(c.conn, raw)
	envelope, err := job.Decode(raw.Body)
	if err != nil {
		c.buryUnread(raw, err)
		return
	}
	x := &execution{consumer: c, raw: raw, began: time.Now()}
	x.job.Envelope, x.job.BeanstalkID, x.job.Body, x.job.Logger = envelope, raw.ID, raw.Body, p.opts.Logger
	x.job.Tube = p.tubeOf(envelope.Queue)
	x.job.AttemptFunc = x.attempt
	if p.unknown.forget(raw.ID, envelope.ID) {
		c.deleted(x, c.conn.Delete(context.Background(), raw)) // it was done before its first deletion got lost
		return
	}
	if !envelope.ExpiresAt.IsZero() && x.began.After(envelope.ExpiresAt) && c.expired(x) {
		return
	}
	c.perform(x)
}

// perform calls the handler and settles the job with what came of it.
func (c *consumer) perform(x *execution) {
	p := c.pool
	ctx := job.NewContext(context.Background(), &x.job)
	if p.opts.MaxRuntime > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithDeadlineCause(ctx, x.began.Add(p.opts.MaxRuntime), errMaxRuntime)
		defer stop()
	}
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	c.current.Store(x)
	p.note(func(b Board) { b.Start(c.number, x.raw.ID, x.job.Kind, x.began) })
	if p.opts.Observer != nil {
		p.observe(x.event(EventPerformStart))
	}

	err := job.ErrGoexit // what stands if the handler never comes back
	defer func() {
		if value := recover(); value != nil {
			err = &job.PanicError{Value: value, Stack: debug.Stack()}
		}
		why, stuck := x.finish()
		c.current.Store(nil)
		p.note(func(b Board) { b.Finish(c.number) })
		if x.ctx.Err() == nil {
			x.cancel(context.Canceled)
		}
		if p.opts.Observer != nil {
			e := x.event(EventPerform)
			e.Duration, e.Err = time.Since(x.began), err
			p.observe(e)
		}
		if !stuck {
			c.settle(x, err, why)
		}
	}()
	if h, ok := p.opts.Registry.Lookup(x.job.Kind); ok {
		err = h.HandleJob(x.ctx, &x.job)
	} else {
		err = &job.UnknownKindError{Kind: x.job.Kind, Kinds: p.opts.Registry.Kinds()}
	}
}

// note calls the board, if there is one.
func (p *Pool) note(f func(Board)) {
	if p.opts.Board == nil {
		return
	}
	defer p.shrugOff("board")
	f(p.opts.Board)
}

// attempt answers job.Attempt.
func (x *execution) attempt(ctx context.Context) (int, error) {
	stats, err := x.consumer.conn.StatsJob(ctx, x.raw.ID)
	if err != nil {
		return 0, err
	}
	return attemptOf(x.job.Envelope, stats), nil
}

// tubeOf finds the tube of a queue among those that are watched; reserve does not say it.
func (p *Pool) tubeOf(queue string) string {
	if len(p.opts.Tubes) == 1 {
		return p.opts.Tubes[0]
	}
	for _, tube := range p.opts.Tubes {
		if queue != "" && strings.HasSuffix(tube, queue) && strings.HasSuffix(tube[:len(tube)-len(queue)], ".") {
			return tube
		}
	}
	return ""
}
