package broker

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"slices"
	"sync"
	"time"
)

// engine is the state of a server: tubes, jobs and who waits for them. It knows nothing
// of connections. Its methods may be called from any goroutine.
type engine struct {
	maxJobSize int
	started    time.Time
	id         string
	host       string

	mu      sync.Mutex // guards what follows, and everything that it leads to
	tubes   map[string]*tube
	jobs    map[uint64]*job
	lastID  uint64
	delays  queue // of all tubes, by deadline
	leases  queue // of all clients, by deadline
	paused  map[*tube]struct{}
	timer   *time.Timer
	counts  map[string]int // of commands and more, by the names of stats
	clients int
	faults  Faults
	nobody  *client // holds jobs that a failure has left reserved by no connection
}

// tube holds jobs.
type tube struct {
	name    string
	ready   queue
	buried  []*job
	delays  int
	held    int
	waiting []*client
	using   int
	watched int
	total   uint64
	deletes int
	pauses  int
	urgent  int
	pause   time.Duration
	until   time.Time // of the pause
}

// client is one connection as the engine sees it.
type client struct {
	use      *tube
	watch    []*tube
	held     map[*job]struct{}
	waiting  bool
	got      *job          // the answer to a reserve that waited
	wake     chan struct{} // says that there is one; capacity 1
	producer bool
	worker   bool
}

func newEngine(maxJobSize int) *engine {
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails, by its contract
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	e := &engine{
		maxJobSize: maxJobSize, started: time.Now(), id: hex.EncodeToString(id[:]), host: host,
		tubes: make(map[string]*tube), jobs: make(map[uint64]*job), paused: make(map[*tube]struct{}), counts: make(map[string]int),
		nobody: &client{held: make(map[*job]struct{})},
		delays: queue{less: byDeadline}, leases: queue{less: byDeadline},
	}
	e.tube("default")
	return e
}

func (e *engine) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.timer != nil {
		e.timer.Stop()
	}
}

func (e *engine) setFaults(f Faults) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.faults = f
}

// tube returns the tube of a name, made if need be.
func (e *engine) tube(name string) *tube {
	t := e.tubes[name]
	if t == nil {
		t = &tube{name: name, ready: queue{less: byPriority}}
		e.tubes[name] = t
	}
	return t
}

// vanish forgets a tube that nobody refers to.
func (e *engine) vanish(t *tube) {
	if t.name != "default" && t.using == 0 && t.watched == 0 && len(t.ready.jobs) == 0 && len(t.buried) == 0 && t.delays == 0 && t.held == 0 {
		delete(e.tubes, t.name)
		delete(e.paused, t)
	}
}

func (e *engine) connect() *client {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.tube("default")
	t.using++
	t.watched++
	e.clients++
	e.counts["total-connections"]++
	return &client{use: t, watch: []*tube{t}, held: make(map[*job]struct{}), wake: make(chan struct{}, 1)}
}

func (e *engine) disconnect(c *client) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.clients--
	e.unwait(c)
	for j := range c.held {
		e.take(j)
		e.enqueue(j, ready, 0)
	}
	c.use.using--
	e.vanish(c.use)
	for _, t := range c.watch {
		t.watched--
		e.vanish(t)
	}
	if c.producer {
		e.counts["current-producers"]--
	}
	if c.worker {
		e.counts["current-workers"]--
	}
	e.serve()
}

// enqueue puts a job that is in no queue into one.
func (e *engine) enqueue(j *job, to state, delay time.Duration) {
	j.state, j.holder = to, nil
	switch to {
	case ready:
		j.tube.ready.add(j)
		if j.pri < urgentBelow {
			j.tube.urgent++
		}
	case delayed:
		j.deadline = time.Now().Add(delay)
		j.tube.delays++
		e.delays.add(j)
	case buried:
		j.tube.buried = append(j.tube.buried, j)
	}
}

// take removes a job from the queue that it is in.
func (e *engine) take(j *job) {
	switch j.state {
	case ready:
		j.tube.ready.remove(j)
		if j.pri < urgentBelow {
			j.tube.urgent--
		}
	case delayed:
		e.delays.remove(j)
		j.tube.delays--
	case reserved:
		e.leases.remove(j)
		j.tube.held--
		delete(j.holder.held, j)
	case buried:
		j.tube.buried = slices.DeleteFunc(j.tube.buried, func(other *job) bool { return other == j })
	}
}

// lease gives a job, which is in no queue, to a client.
func (e *engine) lease(j *job, c *client) {
	j.state, j.holder = reserved, c
	j.deadline = time.Now().Add(j.ttr)
	j.reserves++
	j.tube.held++
	c.held[j] = struct{}{}
	e.leases.add(j)
}

// next returns the ready job that comes first among the tubes that a client watches, nil if there is none.
func (e *engine) next(c *client) *job {
	var best *job
	for _, t := range c.watch {
		if j := t.ready.first(); j != nil && t.pause == 0 && (best == nil || byPriority(j, best)) {
			best = j
		}
	}
	return best
}

// serve hands ready jobs to the clients that wait for them, and sees to it that time is watched.
func (e *engine) serve() {
	for {
		var best *job
		for _, t := range e.tubes {
			if len(t.waiting) == 0 || t.pause != 0 {
				continue
			}
			if j := t.ready.first(); j != nil && (best == nil || byPriority(j, best)) {
				best = j
			}
		}
		if best == nil {
			break
		}
		c := best.tube.waiting[0]
		e.unwait(c)
		e.take(best)
		e.lease(best, c)
		c.got = best
		c.wake <- struct{}{}
	}
	e.schedule()
}

func (e *engine) wait(c *client) {
	c.waiting = true
	e.counts["current-waiting"]++
	for _, t := range c.watch {
		t.waiting = append(t.waiting, c)
	}
}

func (e *engine) unwait(c *client) {
	if !c.waiting {
		return
	}
	c.waiting = false
	e.counts["current-waiting"]--
	for _, t := range c.watch {
		t.waiting = slices.DeleteFunc(t.waiting, func(other *client) bool { return other == c })
	}
}

// schedule sets the timer to the next thing that time will do.
func (e *engine) schedule() {
	var at time.Time
	sooner := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	if j := e.delays.first(); j != nil {
		sooner(j.deadline)
	}
	if j := e.leases.first(); j != nil {
		sooner(j.deadline)
	}
	for t := range e.paused {
		sooner(t.until)
	}
	if at.IsZero() {
		if e.timer != nil {
			e.timer.Stop()
		}
		return
	}
	if wait := time.Until(at); e.timer == nil {
		e.timer = time.AfterFunc(wait, e.tick)
	} else {
		e.timer.Reset(wait)
	}
}

// tick does what is due.
func (e *engine) tick() {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	for j := e.delays.first(); j != nil && !j.deadline.After(now); j = e.delays.first() {
		e.take(j)
		e.enqueue(j, ready, 0)
	}
	for j := e.leases.first(); j != nil && !j.deadline.After(now); j = e.leases.first() {
		j.timeouts++
		e.counts["job-timeouts"]++
		e.take(j)
		e.enqueue(j, ready, 0)
	}
	for t := range e.paused {
		if !t.until.After(now) {
			t.pause = 0
			delete(e.paused, t)
		}
	}
	e.serve()
}
