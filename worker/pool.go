package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alitto/pond/v2"

	"github.com/postburner/postburner/job"
)

// ErrLimit is how Run says that Limit jobs have been started and all have ended.
var ErrLimit = errors.New("worker: job limit reached")

// StuckError is how Run says that handlers ignored the end of their context and still
// run. Their jobs have been settled as failed attempts; only the end of the process ends them.
type StuckError struct{ Handlers int }

func (e *StuckError) Error() string {
	return fmt.Sprintf("worker: %d handlers ignored the end of their context and still run; end the process", e.Handlers)
}

// Pool is the consumers of one process.
type Pool struct {
	opts      Options
	consumers []*consumer
	gate      *gate
	outage    outage
	pause     storePause
	unknown   unknownDeletes
	poison    poisonGuard
	counts    counters
	keepers   sync.WaitGroup // goroutines that keep a lease or settle the job of a stuck handler
	ran       atomic.Bool
}

// New checks the options and returns a Pool that has started nothing yet. Its error names every option that is wrong.
func New(opts Options) (*Pool, error) {
	problems := opts.complete()
	p := &Pool{opts: opts, gate: newGate(opts.Limit)}
	p.outage.pool = p
	if opts.Vigilant {
		p.poison.watch(time.Now())
	}
	for i := range p.opts.Threads {
		c, err := newConsumer(p, i)
		if err != nil {
			return nil, errors.Join(problems, fmt.Errorf("worker: %w", err))
		}
		p.consumers = append(p.consumers, c)
	}
	if problems != nil {
		return nil, problems
	}
	return p, nil
}

// Run consumes until ctx ends; then it drains and returns nil. At Limit started jobs it
// drains and returns ErrLimit; that drain takes as long as the handlers take, unless ctx
// ends. A *StuckError says that handlers were left behind. Nothing else that Run
// started is left when it returns. It may be called once.
func (p *Pool) Run(ctx context.Context) error {
	if p.ran.Swap(true) {
		return errors.New("worker: Run was called before")
	}
	pooling, release := context.WithCancel(context.Background())
	defer release()
	consumers := pond.NewPool(p.opts.Threads, pond.WithQueueSize(0), pond.WithContext(pooling))
	ended := make(chan struct{}, len(p.consumers))
	for _, c := range p.consumers {
		consumers.Submit(func() {
			c.run()
			ended <- struct{}{}
		})
	}
	keeping, stopKeeping := context.WithCancel(context.Background())
	p.keepers.Go(func() { p.watchExecutions(keeping) })
	defer func() {
		stopKeeping()
		p.keepers.Wait()
		for _, c := range p.consumers {
			_ = c.conn.Close() // never fails
		}
	}()

	asked := false
	stopAsked := ctx.Done()
	var late <-chan time.Time
	check := time.NewTicker(100 * time.Millisecond) // for consumers that are stuck and will never say that they ended
	defer check.Stop()
	for left := len(p.consumers); left > 0; {
		select {
		case <-ended:
			left--
		case <-stopAsked:
			asked, stopAsked = true, nil
			p.stop()
			timer := time.NewTimer(p.opts.ShutdownTimeout)
			defer timer.Stop()
			late = timer.C
		case <-late:
			p.cancelAll()
		case <-check.C:
			if stuck := p.countStuck(); p.gate.isClosed() && stuck == left {
				return &StuckError{stuck}
			}
		}
	}
	if !asked {
		return ErrLimit
	}
	return nil
}

// Quiet stops reserving for good: running jobs finish, consumers stay. It may be called
// at any time, before Run too.
func (p *Pool) Quiet() {
	p.gate.setQuiet()
	p.interrupt()
}

// stop lets no further job start and ends what waits for one.
func (p *Pool) stop() {
	p.gate.close()
	p.interrupt()
}

func (p *Pool) interrupt() {
	for _, c := range p.consumers {
		c.conn.Interrupt()
	}
}

// recycle announces that Limit jobs have been started, and stops.
func (p *Pool) recycle() {
	if p.opts.Recycling != nil {
		func() {
			defer p.recoverCallback("Options.Recycling")
			p.opts.Recycling()
		}()
	}
	p.stop()
}

// cancelAll tells every running handler that the shutdown timeout is over.
func (p *Pool) cancelAll() {
	for _, c := range p.consumers {
		if x := c.current.Load(); x != nil {
			x.end(job.ErrShutdown)
		}
	}
}

func (p *Pool) countStuck() (n int) {
	for _, c := range p.consumers {
		if x := c.current.Load(); x != nil && x.isStuck() {
			n++
		}
	}
	return n
}
