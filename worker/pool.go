package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alitto/pond/v2"
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
	server    outage
	unknown   unknownDeletes
	counts    counters
	trouble   trouble
	stopped   chan struct{} // closed when no further job may start

	mu      sync.Mutex // guards what follows
	halt    bool       // no further job may start
	quiet   bool
	started int
}

// counters are what Stats reports, since the start.
type counters struct {
	started, done, retried, discarded, buried, lost, interrupted, stuck, possibleDuplicates atomic.Uint64
}

// New checks the options and returns a Pool that has started nothing yet. Its error names every option that is wrong.
func New(opts Options) (*Pool, error) {
	p := &Pool{stopped: make(chan struct{})}
	problems := opts.complete()
	p.opts = opts
	p.server.pool = p
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
// started is left when it returns. It must be called once.
func (p *Pool) Run(ctx context.Context) error {
	consumers := pond.NewPool(p.opts.Threads, pond.WithQueueSize(0))
	ended := make(chan struct{}, len(p.consumers))
	for _, c := range p.consumers {
		consumers.Submit(func() {
			c.run()
			ended <- struct{}{}
		})
	}
	keeping, stopKeeping := context.WithCancel(context.Background())
	var keeper sync.WaitGroup
	keeper.Go(func() { p.keepLeases(keeping) })
	defer func() {
		stopKeeping()
		keeper.Wait()
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
			if stuck := p.stuckNow(); p.halted() && stuck == left {
				consumers.Stop()
				return &StuckError{stuck}
			}
		}
	}
	consumers.StopAndWait()
	if !asked {
		return ErrLimit
	}
	return nil
}

// Quiet stops reserving for good: running jobs finish, consumers stay.
func (p *Pool) Quiet() {
	p.mu.Lock()
	p.quiet = true
	p.mu.Unlock()
	p.interrupt()
}

// stop lets no further job start and ends what waits for one.
func (p *Pool) stop() {
	p.mu.Lock()
	first := !p.halt
	p.halt = true
	p.mu.Unlock()
	if first {
		close(p.stopped)
	}
	p.interrupt()
}

func (p *Pool) interrupt() {
	for _, c := range p.consumers {
		c.conn.Interrupt()
	}
}

func (p *Pool) halted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.halt
}

// mayReserve reports whether a consumer may look for a job.
func (p *Pool) mayReserve() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.halt && !p.quiet
}

// mayStart admits one job, exactly Limit of them in all. After a stop it admits none.
func (p *Pool) mayStart() (ok, last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.halt || p.quiet {
		return false, false
	}
	p.started++
	p.counts.started.Add(1)
	last = p.started == p.opts.Limit
	if last { // before anyone else can be admitted
		p.halt = true
	}
	return true, last
}

// reachLimit announces that the pool will drain, and drains. mayStart has let in the last job.
func (p *Pool) reachLimit() {
	if p.opts.Recycling != nil {
		func() {
			defer p.shrugOff("Options.Recycling")
			p.opts.Recycling()
		}()
	}
	close(p.stopped)
	p.interrupt()
}

// cancelAll tells every running handler that the shutdown timeout is over.
func (p *Pool) cancelAll() {
	for _, c := range p.consumers {
		if x := c.current.Load(); x != nil {
			x.end(causeShutdown)
		}
	}
}

func (p *Pool) stuckNow() (n int) {
	for _, c := range p.consumers {
		if x := c.current.Load(); x != nil && x.isStuck() {
			n++
		}
	}
	return n
}

// Stats is a snapshot of a pool. Counters are since its start.
type Stats struct {
	Threads   int // consumers
	Connected int // of them, to the server
	Busy      int // of them, with a job
	Quiet     bool

	Started, Done, Retried, Discarded, Buried, Lost, Interrupted uint64
	Stuck                                                        uint64 // handlers that ignored their ended context
	PossibleDuplicates                                           uint64 // done, but the deletion is unknown
}

// Stats returns a snapshot. It may be called at any time.
func (p *Pool) Stats() Stats {
	s := Stats{
		Threads: len(p.consumers),
		Started: p.counts.started.Load(), Done: p.counts.done.Load(), Retried: p.counts.retried.Load(),
		Discarded: p.counts.discarded.Load(), Buried: p.counts.buried.Load(), Lost: p.counts.lost.Load(),
		Interrupted: p.counts.interrupted.Load(), Stuck: p.counts.stuck.Load(), PossibleDuplicates: p.counts.possibleDuplicates.Load(),
	}
	for _, c := range p.consumers {
		if c.conn.Connected() {
			s.Connected++
		}
		if c.current.Load() != nil {
			s.Busy++
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.Quiet = p.quiet
	return s
}
