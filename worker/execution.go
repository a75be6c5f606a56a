package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/job"
)

// errMaxRuntime is the cause of a context whose execution took longer than MaxRuntime.
var errMaxRuntime = fmt.Errorf("max_runtime is over: %w", context.DeadlineExceeded)

// execution is one job in the hands of one consumer, from its reserve to its outcome.
type execution struct {
	consumer *consumer
	raw      *beanstalk.Job
	job      job.Job // the handler's, not changed once it has it
	key      uint64  // of keyOf
	priority uint32  // if it is to be marked
	marked   bool    // it has been
	began    time.Time
	cancel   context.CancelCauseFunc // of ctx

	mu          sync.Mutex      // guards what follows
	ctx         context.Context //nolint:containedctx // it is the handler's, and others end it
	returned    bool            // the handler has
	kept        bool            // its lease has a keeper
	returnedC   chan struct{}   // closed then; nil until someone waits for it
	cause       error           // why the context was ended before that; nil if it was not
	cancelledAt time.Time       // when
	stuck       bool            // the handler has ignored that for too long: its job is settled without it
}

// end ends the handler's context, once. A lost lease overrides whatever came before it,
// since it decides that the job is not ours to settle.
func (x *execution) end(cause error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.returned || errors.Is(x.cause, job.ErrLeaseLost) {
		return
	}
	if x.cause == nil {
		x.cancelledAt = time.Now()
	}
	if x.cause == nil || errors.Is(cause, job.ErrLeaseLost) {
		x.cause = cause
	}
	x.cancel(cause)
}

// waitForTwin waits until no other handler in this process runs the same job. That it
// could be reserved again says that the other one's lease is lost. It returns false if this
// execution, or the pool, is over before that.
func (x *execution) waitForTwin() bool {
	p := x.consumer.pool
	for _, c := range p.consumers {
		other := c.current.Load()
		if other == nil || other == x || other.raw.ID != x.raw.ID || other.key != x.key {
			continue
		}
		other.end(fmt.Errorf("%w: the server has handed it out again", job.ErrLeaseLost))
		select {
		case <-other.done():
		case <-x.ctx.Done():
			return false
		case <-p.gate.stopped:
			return false
		}
	}
	return true
}

// done returns what is closed when the handler has returned.
func (x *execution) done() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.returnedC == nil {
		x.returnedC = make(chan struct{})
		if x.returned {
			close(x.returnedC)
		}
	}
	return x.returnedC
}

// finish notes that the handler has returned. It reports whether its job is settled without
// it, and why its context had been ended.
func (x *execution) finish() (stuck bool, cause error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.returned = true
	if x.returnedC != nil {
		close(x.returnedC)
	}
	return x.stuck, x.cause
}

func (x *execution) isStuck() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.stuck
}

// event returns an event with the identity of the job filled in.
func (x *execution) event(t EventType) Event {
	return Event{Type: t, Kind: x.job.Kind, JobID: x.job.ID, BeanstalkID: x.raw.ID, Tube: x.job.Tube}
}

// execute runs a reserved job and settles it. A handler that ends its goroutine takes the
// consumer's loop with it, but not before its job is settled.
func (c *consumer) execute(raw *beanstalk.Job) {
	p := c.pool
	c.serverID.learn(c.conn, raw)
	envelope, err := job.Decode(raw.Body)
	if err != nil {
		c.buryMalformed(raw, err)
		return
	}
	x := &execution{consumer: c, raw: raw, began: time.Now()}
	x.job.Envelope, x.job.BeanstalkID, x.job.Body, x.job.Logger = envelope, raw.ID, raw.Body, p.opts.Logger
	x.job.Tube = p.tubeOf(envelope.Queue)
	x.job.AttemptFunc = x.attempt
	if p.unknown.claim(raw.ID, envelope.ID) {
		c.settleDelete(x, c.conn.Delete(context.Background(), raw)) // it was done before its first deletion got lost
		return
	}
	if !envelope.ExpiresAt.IsZero() && x.began.After(envelope.ExpiresAt) && c.discardExpired(x) {
		return
	}
	x.key = keyOf(envelope, raw.Body)
	if settled, how := c.checkPoison(x); !settled {
		c.perform(x, how)
	}
}

// perform calls the handler and settles the job with what came of it.
func (c *consumer) perform(x *execution, how precaution) {
	p := c.pool
	var ctx context.Context
	ctx, x.cancel = context.WithCancelCause(job.NewContext(context.Background(), &x.job))
	x.ctx = ctx
	c.current.Store(x)
	if !x.waitForTwin() {
		c.giveUp(x)
		return
	}
	if !c.takePrecaution(x, how) {
		return
	}
	if how != none {
		defer p.gate.share()
	}
	if p.opts.MaxRuntime > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithDeadlineCause(ctx, time.Now().Add(p.opts.MaxRuntime), errMaxRuntime)
		defer stop()
		x.mu.Lock()
		x.ctx = ctx
		x.mu.Unlock()
	}
	p.note(func(b Board) { b.Start(c.number, x.raw.ID, x.key, x.job.Kind, x.began) })
	if p.opts.Observer != nil {
		p.observe(x.event(EventPerformStart))
	}

	err := job.ErrGoexit // what stands if the handler never comes back
	defer func() {
		if value := recover(); value != nil {
			err = &job.PanicError{Value: value, Stack: debug.Stack()}
		}
		stuck, cause := x.finish()
		c.current.Store(nil)
		p.note(func(b Board) { b.Finish(c.number) })
		if ctx.Err() == nil {
			x.cancel(context.Canceled)
		}
		if p.opts.Observer != nil {
			e := x.event(EventPerform)
			e.Duration, e.Err = time.Since(x.began), err
			p.observe(e)
		}
		if !stuck {
			c.settle(x, err, cause)
		}
	}()
	if h, ok := p.opts.Registry.Lookup(x.job.Kind); ok {
		err = h.HandleJob(ctx, &x.job)
	} else {
		err = &job.UnknownKindError{Kind: x.job.Kind, Kinds: p.opts.Registry.Kinds()}
	}
}

// giveUp settles a job that was to run alone and cannot now.
func (c *consumer) giveUp(x *execution) {
	_, cause := x.finish()
	c.current.Store(nil)
	x.cancel(context.Canceled)
	if errors.Is(cause, job.ErrLeaseLost) {
		c.reportLost(x, cause)
		return
	}
	c.handBack(x, nil)
}

// note calls the board, if there is one.
func (p *Pool) note(f func(Board)) {
	if p.opts.Board == nil {
		return
	}
	defer p.recoverCallback("Options.Board")
	f(p.opts.Board)
}

// attempt answers job.Attempt.
func (x *execution) attempt(ctx context.Context) (int, error) {
	stats, err := x.consumer.conn.StatsHeld(ctx, x.raw)
	if err != nil {
		return 0, err
	}
	return attemptOf(x.job.Envelope, stats), nil
}

// tubeOf finds the tube of a queue among those that are watched; reserve does not say
// it. All have the same prefix, so of those that end with the queue the shortest is it.
func (p *Pool) tubeOf(queue string) (tube string) {
	if len(p.opts.Tubes) == 1 {
		return p.opts.Tubes[0]
	}
	for _, candidate := range p.opts.Tubes {
		prefix, ok := strings.CutSuffix(candidate, queue)
		if ok && queue != "" && strings.HasSuffix(prefix, ".") && (tube == "" || len(candidate) < len(tube)) {
			tube = candidate
		}
	}
	return tube
}
