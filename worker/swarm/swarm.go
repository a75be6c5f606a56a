package swarm

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Swarm keeps the children of one parent process alive.
type Swarm struct {
	opts        Options
	shares      []string       // variables for the children
	events      chan any       // from the goroutines that supervise a child; each is read before Run returns
	supervising sync.WaitGroup // these
	ran         atomic.Bool
	began       time.Time
	suspects    suspects      // Run's own
	oom         *oomWatch     // likewise
	requested   chan struct{} // there is something in requests

	mu        sync.Mutex // guards what follows
	requests  []any
	state     state
	processes map[int]*process // by the child's id
	past      Heartbeat        // the counters of children that have ended
	lastExits []string         // by slot
}

// New checks the options and returns a Swarm that has started nothing yet. Its error
// names every option that is wrong, or says that this system has no swarms.
func New(opts Options) (*Swarm, error) {
	if err := supported(); err != nil {
		return nil, err
	}
	if err := opts.complete(); err != nil {
		return nil, err
	}
	return &Swarm{
		opts:   opts,
		shares: shares(opts.Forks, opts.Logger),
		oom:    newOOMWatch(os.DirFS("/")),
		events: make(chan any), requested: make(chan struct{}, 1),
		state:     newState(opts),
		processes: make(map[int]*process),
		lastExits: make([]string, opts.Forks),
	}, nil
}

func newState(opts Options) state {
	return state{
		limits: limits{
			boot: opts.BootTimeout, ready: opts.ReadyTimeout, liveness: opts.LivenessTimeout,
			shutdown: opts.ShutdownTimeout, healthy: opts.HealthyAfter, memory: opts.MemoryLimit, backoff: opts.Backoff,
		},
		slots:       make([]slot, opts.Forks),
		replacement: replacement{slot: opts.Forks - 1}, // so that slot 0 is the first to be replaced
	}
}

// Run supervises until ctx ends or Kill is called. Then it asks the children to stop with TERM,
// again each second, kills those that have not ended 5 s after the shutdown timeout,
// and returns nil once each has been waited for. Nothing that it started is left then. It may be called once.
func (s *Swarm) Run(ctx context.Context) error {
	if s.ran.Swap(true) {
		return errors.New("swarm: Run was called before")
	}
	s.began = time.Now()
	spawning, stopSpawning := context.WithCancel(ctx)
	defer stopSpawning()
	memory := time.NewTicker(s.opts.MemoryCheck)
	defer memory.Stop()
	s.warnIfMemoryLimitUnsupported()
	timer := time.NewTimer(0)
	defer timer.Stop()
	stop := ctx.Done()
	pulsed := time.Time{}
	for !s.state.over() { // only this goroutine changes it
		select {
		case <-stop:
			stop = nil
			s.handle(spawning, askedToStop{})
		case e := <-s.events:
			s.handle(spawning, e)
		case <-s.requested:
			for _, e := range s.takeRequests() {
				if _, ok := e.(askedToKill); ok {
					stopSpawning()
				}
				s.handle(spawning, e)
			}
		case <-timer.C:
			s.handle(spawning, tick{})
		case <-memory.C:
			s.checkMemory(spawning)
		}
		now := time.Now()
		if s.opts.Pulse != nil && now.Sub(pulsed) >= time.Second && !s.state.isOverdue(now) {
			pulsed = now
			s.call("Options.Pulse", s.opts.Pulse)
		}
		timer.Reset(s.state.wake(now).Sub(now))
	}
	s.supervising.Wait()
	return nil
}

// Kill kills every child at once and has Run return as soon as they are gone.
func (s *Swarm) Kill() { s.request(askedToKill{}) }

// Quiet has every child, and every later one, take no more jobs. There is no way back but a new Swarm.
func (s *Swarm) Quiet() { s.request(askedToQuiet{}) }

// Restart replaces every child, one slot after another: each old one is asked to end when its
// replacement consumes, and the next slot follows when it has. If a replacement does not consume in time, the old child
// stays and the restart ends there. What is going on is told to the Observer.
func (s *Swarm) Restart() { s.request(askedToRestart{}) }

// request may come at any time, before Run and after it too, and from the Observer.
func (s *Swarm) request(e any) {
	s.mu.Lock()
	s.requests = append(s.requests, e)
	s.mu.Unlock()
	nudge(s.requested)
}

func (s *Swarm) takeRequests() []any {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.requests
	s.requests = nil
	return taken
}

// handle has the state machine decide, and carries out what it says. A stop that has been
// asked for comes before everything else, so that nothing is started after it.
func (s *Swarm) handle(spawning context.Context, event any) {
	if spawning.Err() != nil && !s.state.stopping {
		s.decide(spawning, askedToStop{})
	}
	s.decide(spawning, event)
}

func (s *Swarm) decide(spawning context.Context, event any) {
	switch e := event.(type) {
	case started:
		s.mu.Lock()
		s.processes[e.p.id] = e.p
		s.mu.Unlock()
		event = spawned{e.p.id}
	case heard:
		s.mu.Lock()
		s.processes[e.id].heartbeat = e.line.Heartbeat
		s.mu.Unlock()
	case exited:
		e.exit.Heartbeat = s.processes[e.id].heartbeat
		event = e
		if _, c := s.state.find(e.id); c != nil && !c.terminating && e.exit.Code != ExitRecycled {
			s.accuse(e)
		}
	}
	next, actions := s.state.next(time.Now(), event)
	s.mu.Lock()
	s.state = next
	s.mu.Unlock()
	for _, action := range actions {
		s.carryOut(spawning, action)
	}
	if e, ok := event.(exited); ok {
		s.reap(e)
	}
}

func (s *Swarm) carryOut(spawning context.Context, action any) {
	switch a := action.(type) {
	case spawn:
		order := order{a, slices.Clone(s.suspects), time.Since(s.began) < vigilantFor}
		s.supervising.Go(func() { s.supervise(spawning, order) })
	case term:
		s.send(a.id, syscall.SIGTERM)
	case kill:
		s.send(a.id, syscall.SIGKILL)
	case quiet:
		s.processes[a.id].commands.put(commandQuiet + "\n")
	case notice:
		s.tell(a.Event)
	}
}

func (s *Swarm) send(id int, sig syscall.Signal) {
	p := s.processes[id]
	if err := p.signal(sig); err != nil {
		s.opts.Logger.Error("a child could not be signalled", "slot", p.slot, "pid", p.pid(), "error", err)
	}
}

// accuse tells every child of what was running when one died without having been asked to end.
func (s *Swarm) accuse(e exited) {
	command, err := encodeSuspects(s.suspects.accuse(e.exit.Running))
	if err != nil {
		s.opts.Logger.Error("the children cannot be told of the jobs that a child died with", "error", err)
		return
	}
	for id, p := range s.processes {
		if id != e.id {
			p.commands.put(command)
		}
	}
}

// reap gives back what was held of a child that has ended.
func (s *Swarm) reap(e exited) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.processes[e.id]
	delete(s.processes, e.id)
	s.past.addCounters(p.heartbeat)
	s.lastExits[p.slot] = e.exit.String()
	p.release()
}
