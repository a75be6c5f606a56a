package swarm

import (
	"context"
	"strings"
	"sync"
	"syscall"
	"time"
)

// tickEvery is how often time alone may ask for something.
const tickEvery = 100 * time.Millisecond

// Swarm keeps the children of one parent process alive.
type Swarm struct {
	opts        Options
	environment []string
	events      chan any
	ended       chan struct{} // closed when Run returns
	running     sync.WaitGroup

	// What follows is the loop's own.
	state     *state
	processes map[int]*process

	mu     sync.Mutex // guards what follows
	status Status
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
	st := &state{
		limits: limits{
			boot: opts.BootTimeout, takeover: opts.ReadyTimeout, liveness: opts.LivenessTimeout,
			shutdown: opts.ShutdownTimeout, healthy: opts.HealthyAfter, backoff: opts.Backoff,
		},
		slots: make([]slot, opts.Forks),
	}
	return &Swarm{
		opts: opts, state: st, environment: shares(opts.Forks, opts.Logger),
		events: make(chan any, 64), ended: make(chan struct{}), processes: make(map[int]*process),
	}, nil
}

// Run supervises until ctx ends or Kill is called. Then it asks the children to stop,
// again each second, kills those that have not ended 5 s after the shutdown timeout,
// and returns nil once none is left. It must be called once.
func (s *Swarm) Run(ctx context.Context) error {
	defer close(s.ended)
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	memory := time.NewTicker(s.opts.MemoryCheck)
	defer memory.Stop()
	stop := ctx.Done()
	s.handle(evTick{})
	for !s.state.stopping || s.state.count() > 0 {
		select {
		case <-stop:
			stop = nil
			s.handle(evStop{})
		case event := <-s.events:
			s.handle(event)
		case <-tick.C:
			s.handle(evTick{})
		case <-memory.C:
			s.checkMemory()
		}
	}
	s.running.Wait()
	return nil
}

// Kill kills every child at once and has Run return as soon as they are gone.
func (s *Swarm) Kill() { s.ask(evKill{}) }

// Quiet has every child, and every later one, take no more jobs. There is no way back but a new Swarm.
func (s *Swarm) Quiet() { s.ask(evQuiet{}) }

// Restart replaces every child, one slot after another: each old one stops when its
// replacement consumes. If one does not, the old child stays and the restart ends there.
func (s *Swarm) Restart() { s.ask(evRestart{}) }

func (s *Swarm) ask(event any) {
	select {
	case s.events <- event:
	case <-s.ended:
	}
}

// handle has the state machine decide and carries out what it says. What that leads to at once is handled with it.
func (s *Swarm) handle(event any) {
	for queue := []any{event}; len(queue) > 0; queue = queue[1:] {
		if exited, ok := queue[0].(evExited); ok {
			s.bury(exited)
		}
		for _, action := range s.state.step(time.Now(), queue[0]) {
			if follows := s.carryOut(action); follows != nil {
				queue = append(queue, follows)
			}
		}
	}
	s.publish()
}

func (s *Swarm) carryOut(action any) (follows any) {
	switch a := action.(type) {
	case actSpawn:
		p, err := s.start(a.slot, a.id)
		if err != nil {
			return evSpawnFailed{a.id, err}
		}
		s.processes[a.id] = p
		s.opts.Logger.Info("child started", "slot", a.slot, "pid", p.cmd.Process.Pid)
		return evSpawned{a.id, p.cmd.Process.Pid}
	case actTerm:
		s.send(a.id, syscall.SIGTERM)
	case actKill:
		s.send(a.id, syscall.SIGKILL)
	case actQuiet:
		if p := s.processes[a.id]; p != nil {
			select {
			case p.commands <- commandQuiet:
			default: // it has been told before
			}
		}
	case actTell:
		s.tell(a)
	}
	return nil
}

func (s *Swarm) send(id int, sig syscall.Signal) {
	p := s.processes[id]
	if p == nil {
		return
	}
	if err := p.signal(sig); err != nil {
		s.opts.Logger.Error("a child could not be signalled", "slot", p.slot, "error", err)
	}
}

func (s *Swarm) tell(a actTell) {
	args := a.args
	if a.pid != 0 {
		args = append([]any{"pid", a.pid}, args...)
	}
	if a.slot >= 0 {
		args = append([]any{"slot", a.slot}, args...)
	}
	if a.bad {
		s.opts.Logger.Error(a.message, args...)
	} else {
		s.opts.Logger.Info(a.message, args...)
	}
}

// bury logs the end of a child, once, and gives back what was held of it.
func (s *Swarm) bury(e evExited) {
	p := s.processes[e.id]
	delete(s.processes, e.id)
	close(p.commands)
	p.release()
	_, c := s.state.find(e.id)
	args := []any{"slot", e.exit.Slot, "pid", e.exit.PID, "age", time.Since(c.spawnedAt).Round(time.Millisecond), "jobs", c.beat.Started}
	switch {
	case e.exit.Signal != "":
		args = append(args, "signal", e.exit.Signal)
	default:
		args = append(args, "code", e.exit.Code)
	}
	if e.exit.Signal == "SIGKILL" && !c.killed {
		args = append(args, "hint", "nobody here sent it: look for the kernel's OOM killer")
	}
	switch {
	case e.exit.Code == ExitRecycled:
		s.opts.Logger.Info("child recycled", args...)
	case e.exit.Code == 0:
		s.opts.Logger.Info("child stopped", args...)
	default:
		names := make([]string, len(e.exit.Running))
		for i, row := range e.exit.Running {
			names[i] = row.String()
		}
		s.opts.Logger.Error("child died", append(args, "running", strings.Join(names, ", "))...)
	}
	if s.opts.Exited != nil {
		s.opts.Exited(e.exit)
	}
}
