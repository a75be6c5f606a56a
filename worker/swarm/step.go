package swarm

import (
	"fmt"
	"slices"
	"time"
)

// The events that the state machine is told.
type (
	tick        struct{}
	spawned     struct{ id int }
	spawnFailed struct {
		id  int
		err error
	}
	heard struct { // a line of the status pipe
		id   int
		line message
	}
	measured struct { // resident memory
		id  int
		rss int64
	}
	exited struct {
		id   int
		exit Exit
	}
	askedToStop    struct{}
	askedToKill    struct{}
	askedToQuiet   struct{}
	askedToRestart struct{}
)

// The actions that it answers with. They are carried out at once, in their order.
type (
	spawn struct {
		slot, id int
		quiet    bool
	}
	term   struct{ id int }
	kill   struct{ id int }
	quiet  struct{ id int }
	notice struct{ Event }
)

// machine is a step while it is made.
type machine struct {
	state
	now     time.Time
	actions []any
}

// next returns the state after an event and what is to be done about it. It is pure but
// for the jitter of the backoff, leaves the old state as it is, and answers with at most one spawn: the
// next is decided on when that is known to have worked, so that a stop in between is seen.
func (s state) next(now time.Time, event any) (state, []any) {
	m := machine{state: s.clone(), now: now}
	m.extendDeadlines()
	m.seen = now
	m.apply(event)
	m.checkDeadlines()
	m.replace()
	return m.state, m.actions
}

func (m *machine) do(action any) { m.actions = append(m.actions, action) }

func (m *machine) apply(event any) {
	switch e := event.(type) {
	case tick:
	case spawned:
		m.spawned(e.id)
	case spawnFailed:
		m.spawnFailed(e)
	case heard:
		m.heard(e)
	case measured:
		m.measured(e)
	case exited:
		m.exited(e)
	case askedToStop:
		m.stop()
	case askedToKill:
		m.stop()
		m.each(func(i int, c *child) { m.kill(i, c, "asked for") })
	case askedToQuiet:
		m.quietAll()
	case askedToRestart:
		m.restartAll()
	default:
		panic(fmt.Sprintf("swarm: unknown event %T", event))
	}
}

// tell reports an event of one child.
func (m *machine) tell(i int, c *child, e Event) {
	e.Slot, e.id = i, c.id
	m.do(notice{e})
}

// tellAll reports an event of the whole swarm.
func (m *machine) tellAll(e Event) {
	e.Slot = -1
	m.do(notice{e})
}

func (m *machine) spawned(id int) {
	i, c := m.find(id)
	if c == nil || c.phase > spawning {
		return
	}
	c.phase, c.bootBy = booting, m.now.Add(m.boot)
	m.tell(i, c, Event{Type: EventSpawned})
	m.quietChild(c)
	switch { // while it was being started
	case c.killed:
		m.do(kill{c.id})
	case c.terminating:
		m.do(term{c.id})
	}
}

func (m *machine) spawnFailed(e spawnFailed) {
	i, c := m.find(e.id)
	if c == nil {
		return
	}
	gone := *c
	m.remove(i, e.id)
	if gone.leaving {
		return // it had been given up already, which has been told
	}
	m.replacementLost(i, &gone, fmt.Sprintf("it could not be started: %v", e.err))
	m.tell(i, &gone, Event{Type: EventSpawnFailed, Err: e.err, Wait: m.fail(i)})
}

func (m *machine) heard(e heard) {
	i, c := m.find(e.id)
	if c == nil {
		return
	}
	c.heartbeatBy = m.now.Add(m.liveness)
	c.started = e.line.Started
	if c.phase < up {
		c.phase = up
		m.tell(i, c, Event{Type: EventHello})
	}
	if e.line.Ready && c.phase < consuming {
		c.phase, c.readyAt = consuming, m.now
		m.tell(i, c, Event{Type: EventReady})
		m.takeOver(i, c)
	}
	if e.line.Recycling && !c.recycling {
		m.recycle(i, c)
	}
	if e.line.Stuck {
		m.mark(i, c, causeStuck)
	}
}

func (m *machine) measured(e measured) {
	i, c := m.find(e.id)
	if c == nil || m.memory <= 0 || e.rss <= m.memory || c.mark != causeNone || c.leaving || m.stopping {
		return
	}
	if !m.isHealthy(c) {
		m.fail(i) // children that outgrow the limit as soon as they work must not be replaced without end
	}
	m.mark(i, c, causeMemory)
}

// exited removes a child that has ended.
func (m *machine) exited(e exited) {
	i, c := m.find(e.id)
	if c == nil {
		return
	}
	gone := *c
	m.remove(i, e.id)
	var wait time.Duration
	if !gone.leaving {
		m.replacementLost(i, &gone, "it ended: "+e.exit.String())
		if e.exit.Code == ExitRecycled && gone.started > 0 {
			m.slots[i].due = time.Time{}
		} else {
			m.forgetFailures(i, &gone)
			wait = m.fail(i)
		}
	}
	asked := gone.terminating && (e.exit.Code == 0 || e.exit.Signal == "SIGTERM") // before it could trap that
	expected := asked || gone.killed || e.exit.Code == ExitRecycled && gone.started > 0
	m.tell(i, &gone, Event{Type: EventExited, Exit: e.exit, Wait: wait, expected: expected})
}

func (m *machine) remove(i, id int) {
	m.slots[i].children = slices.DeleteFunc(m.slots[i].children, func(c child) bool { return c.id == id })
}

// stop asks every child to end; from now on none is started.
func (m *machine) stop() {
	if m.stopping {
		return
	}
	m.stopping = true
	m.tellAll(Event{Type: EventStopping})
	if m.restart {
		m.tellAll(Event{Type: EventRestartDropped})
	}
	m.restart, m.replacement = false, replacement{}
	m.each(func(_ int, c *child) { m.terminate(c) })
}

func (m *machine) quietAll() {
	if m.quiet {
		return
	}
	m.quiet = true
	m.tellAll(Event{Type: EventQuiet})
	m.each(func(_ int, c *child) { m.quietChild(c) })
}

// quietChild tells a child to be quiet, once; one that is being started is told when it exists.
func (m *machine) quietChild(c *child) {
	if m.quiet && !c.quiet && c.phase > spawning {
		c.quiet = true
		m.do(quiet{c.id})
	}
}

// restartAll marks every child that stays. What is started from now on is new anyway, so
// slots that wait after a failure try at once.
func (m *machine) restartAll() {
	if m.stopping {
		return
	}
	m.restart = true
	m.tellAll(Event{Type: EventRestart})
	for i := range m.slots {
		staying := m.slots[i].staying()
		if len(staying) == 0 {
			m.slots[i].due = time.Time{}
		}
		for _, c := range staying {
			c.mark = causeRestart
		}
	}
}
