package swarm

import (
	"fmt"
	"time"
)

// tickEvery is how often the state machine is told of the time at least.
const tickEvery = time.Second

// extendDeadlines puts off what children have to do in time if nobody was here to see it: a parent that was
// stopped, or starved, must not take its own silence for theirs.
func (m *machine) extendDeadlines() {
	gap := m.now.Sub(m.seen)
	if m.seen.IsZero() || gap <= 2*tickEvery {
		return
	}
	later := func(t *time.Time) {
		if !t.IsZero() {
			*t = t.Add(gap)
		}
	}
	later(&m.replacement.by)
	m.each(func(_ int, c *child) {
		later(&c.bootBy)
		later(&c.heartbeatBy)
	})
}

// checkDeadlines does what time alone asks for.
func (m *machine) checkDeadlines() {
	late := func(t time.Time) bool { return !t.IsZero() && !m.now.Before(t) }
	m.each(func(i int, c *child) {
		switch {
		case c.killed || c.phase == spawning:
		case c.terminating && late(c.killBy):
			m.killFailed(i, c, fmt.Sprintf("it has not ended within the shutdown timeout (%v) and %v more", m.shutdown, killDelay))
		case c.phase == booting && late(c.bootBy):
			m.killFailed(i, c, fmt.Sprintf("it has not reported to the parent within its boot timeout (%v)", m.boot))
		case c.phase > booting && late(c.heartbeatBy):
			m.killFailed(i, c, fmt.Sprintf("it has given no sign of life for the liveness timeout (%v)", m.liveness))
		case c.terminating && late(c.termAgain):
			c.termAgain = m.now.Add(relayEvery)
			m.do(term{c.id})
		}
		m.forgetFailures(i, c)
	})
	m.checkReplacementDeadline(late(m.replacement.by))
}

// checkReplacementDeadline gives up a successor that does not consume in time. If it is all that its slot has
// left, it stays, and only the replacement is reported as failed.
func (m *machine) checkReplacementDeadline(late bool) {
	if !m.replacement.on || !late {
		return
	}
	why := fmt.Sprintf("it did not consume within %v", m.ready)
	staying := m.slots[m.replacement.slot].staying()
	if len(staying) == slotProcesses {
		m.killFailed(m.replacement.slot, staying[1], why)
		return
	}
	m.replacementFailed(why)
}

// killFailed kills a child that has failed and no longer counts on it.
func (m *machine) killFailed(i int, c *child, why string) {
	head := !c.leaving
	m.kill(i, c, why)
	if head {
		m.replacementLost(i, c, why)
		m.forgetFailures(i, c)
		m.fail(i)
	}
}

// kill sends KILL, once; a child that is being started gets it as soon as it exists.
func (m *machine) kill(i int, c *child, why string) {
	if c.killed {
		return
	}
	c.killed, c.leaving = true, true
	m.tell(i, c, Event{Type: EventKilled, Reason: why})
	if c.phase > spawning {
		m.do(kill{c.id})
	}
}

// terminate sends TERM to a child and no longer counts on it.
func (m *machine) terminate(c *child) {
	if c.terminating || c.killed {
		return
	}
	c.terminating, c.leaving = true, true
	c.termAgain, c.killBy = m.now.Add(relayEvery), m.now.Add(m.shutdown+killDelay)
	if c.phase > spawning {
		m.do(term{c.id})
	}
}

// fail counts a failure of a slot and returns the wait before the next child.
func (m *machine) fail(i int) time.Duration {
	s := &m.slots[i]
	s.failures++
	wait := m.backoff.Delay(s.failures)
	s.due = m.now.Add(wait)
	return wait
}

// forgetFailures makes the slot's next failure the first if its child has consumed for long enough.
func (m *machine) forgetFailures(i int, c *child) {
	if m.isHealthy(c) {
		m.slots[i].failures = 0
	}
}

func (m *machine) isHealthy(c *child) bool {
	return !c.readyAt.IsZero() && m.now.Sub(c.readyAt) >= m.healthy
}
