package swarm

import "time"

// mark has a child replaced once no other replacement is going on.
func (m *machine) mark(i int, c *child, why cause) {
	if m.stopping || c.leaving || c.mark != causeNone {
		return
	}
	c.mark = why
	m.tell(i, c, Event{Type: EventReplace, Reason: string(why)})
}

// recycle lets a child that has reached its job limit finish, while the next one is
// started. A child that has done no job for it has failed: starting the next at once
// would go on for ever.
func (m *machine) recycle(i int, c *child) {
	c.recycling = true
	e := Event{Type: EventRecycling}
	if !c.leaving {
		c.leaving = true
		if c.started > 0 {
			m.slots[i].due = time.Time{}
		} else {
			e.Wait = m.fail(i)
		}
		if len(m.slots[i].children) >= slotProcesses && len(m.slots[i].staying()) == 0 {
			e.Reason = "an earlier child of this slot still finishes its jobs, so the next is started when one of the two has ended"
		}
	}
	m.tell(i, c, e)
}

// takeOver asks the child that c was started to replace, if there is one, to end.
func (m *machine) takeOver(i int, c *child) {
	if c.leaving {
		return
	}
	if m.replacement.on && m.replacement.slot == i && m.replacement.id != c.id {
		m.replacement.ready, m.replacement.by = true, time.Time{}
	}
	for _, old := range m.slots[i].staying() {
		if old.id < c.id {
			m.terminate(old)
		}
	}
}

// replacementLost notes that a slot cannot count on a child any more. If that was the successor, the replacement has failed.
func (m *machine) replacementLost(i int, c *child, why string) {
	if m.replacement.on && !m.replacement.ready && m.replacement.slot == i && m.replacement.id != c.id {
		m.replacementFailed(why)
	}
}

// replacementFailed ends the replacement; the old child stays. A rolling restart ends with it, since the
// next successors would be no better. Any other cause is tried again after the slot's wait.
func (m *machine) replacementFailed(why string) {
	t := m.replacement
	m.replacement = replacement{slot: t.slot}
	m.do(notice{Event{Type: EventReplaceFailed, Slot: t.slot, Reason: string(t.cause) + ": the replacement did not come up: " + why, id: t.id}})
	if t.cause != causeRestart || !m.restart {
		return
	}
	m.restart = false
	m.each(func(_ int, c *child) {
		if c.mark == causeRestart {
			c.mark = causeNone
		}
	})
	m.tellAll(Event{Type: EventRestartFailed, Reason: why})
}

// replace compares each slot with what it should be and starts what is missing.
func (m *machine) replace() {
	if m.stopping {
		return
	}
	m.endReplacement()
	m.beginReplacement()
	busy := false
	m.each(func(_ int, c *child) { busy = busy || c.phase == spawning })
	if busy {
		return
	}
	for i := range m.slots {
		if m.lacks(i) {
			m.spawn(i)
			return
		}
	}
}

// lacks reports whether a slot is to get a child now.
func (m *machine) lacks(i int) bool {
	s := &m.slots[i]
	if len(s.children) >= slotProcesses || m.now.Before(s.due) {
		return false
	}
	staying := s.staying()
	return len(staying) == 0 || m.replacement.on && m.replacement.slot == i && len(staying) == 1 && staying[0].id == m.replacement.id
}

func (m *machine) spawn(i int) {
	m.lastID++
	m.slots[i].children = append(m.slots[i].children, child{id: m.lastID, quiet: m.quiet})
	m.slots[i].spawns++
	if m.replacement.on && !m.replacement.ready && m.replacement.slot == i {
		m.replacement.by = m.now.Add(m.ready)
	}
	m.do(spawn{slot: i, id: m.lastID, quiet: m.quiet})
}

// endReplacement ends the replacement when the successor consumes and the old child has ended.
func (m *machine) endReplacement() {
	if !m.replacement.on || !m.replacement.ready {
		return
	}
	if _, old := m.find(m.replacement.id); old == nil {
		m.replacement = replacement{slot: m.replacement.slot}
	}
}

// beginReplacement lets the next marked child be replaced, slot after slot, if no other is being replaced.
func (m *machine) beginReplacement() {
	if m.replacement.on {
		return
	}
	marked := false
	for k := range m.slots {
		i := (m.replacement.slot + 1 + k) % len(m.slots)
		s := &m.slots[i]
		staying := s.staying()
		if len(staying) == 0 || staying[0].mark == causeNone {
			continue
		}
		marked = marked || staying[0].mark == causeRestart
		if m.now.Before(s.due) {
			continue
		}
		if staying[0].mark != causeRestart && len(s.children) >= slotProcesses {
			continue // a child that finishes its jobs there may take hours; other slots do not wait for it
		}
		m.replacement = replacement{on: true, slot: i, id: staying[0].id, cause: staying[0].mark}
		if m.replacement.cause == causeRestart {
			m.terminateLeaving(i)
		}
		return
	}
	if m.restart && !marked {
		m.restart = false
		m.tellAll(Event{Type: EventRestartDone})
	}
}

// terminateLeaving bounds how long a slot that is to be restarted waits for a child that still finishes its jobs there.
func (m *machine) terminateLeaving(i int) {
	for j := range m.slots[i].children {
		if c := &m.slots[i].children[j]; c.leaving {
			m.terminate(c)
		}
	}
}
