package swarm

import (
	"fmt"
	"slices"
	"time"
)

// Events of the state machine.
type (
	evTick        struct{}
	evSpawned     struct{ id, pid int }
	evSpawnFailed struct {
		id  int
		err error
	}
	evHello struct{ id int }
	evReady struct{ id int }
	evBeat  struct {
		id   int
		beat Beat
	}
	evRecycling struct{ id int }
	evReplace   struct { // over its memory limit, stuck
		id     int
		reason string
	}
	evExited struct {
		id   int
		exit Exit
	}
	evStop    struct{}
	evKill    struct{}
	evQuiet   struct{}
	evRestart struct{}
)

// Actions of the state machine. They are carried out at once, in their order.
type (
	actSpawn struct{ slot, id int }
	actTerm  struct{ id int }
	actKill  struct{ id int }
	actQuiet struct{ id int }
	actTell  struct { // the operator
		bad     bool
		message string
		slot    int
		pid     int
		args    []any
	}
)

// step is what the swarm does: given its state, the time and an event, it changes the
// state and returns what to do. It is pure but for the jitter of the backoff.
func (st *state) step(now time.Time, event any) (actions []any) {
	do := func(a ...any) { actions = append(actions, a...) }
	switch e := event.(type) {
	case evSpawned:
		if _, c := st.find(e.id); c != nil {
			c.pid, c.spawnedAt = e.pid, now
			if st.quiet {
				do(actQuiet{e.id})
			}
			if st.killed {
				c.killed = true
				do(actKill{e.id})
			} else if st.stopping {
				do(actTerm{e.id})
			}
		}
	case evSpawnFailed:
		i, _ := st.find(e.id)
		if i >= 0 {
			do(actTell{bad: true, message: "could not start a child", slot: i, args: []any{"error", e.err}})
			st.gone(now, e.id, Exit{Code: -1, SpawnError: e.err}, do)
		}
	case evHello:
		if _, c := st.find(e.id); c != nil && c.helloAt.IsZero() {
			c.helloAt, c.beatAt = now, now
		}
	case evBeat:
		if _, c := st.find(e.id); c != nil {
			c.beat, c.beatAt = e.beat, now
		}
	case evReady:
		st.ready(now, e.id, do)
	case evRecycling:
		st.recycle(e.id)
	case evReplace:
		st.enqueue(e.id, e.reason)
	case evExited:
		st.gone(now, e.id, e.exit, do)
	case evStop:
		st.stop(now, do)
	case evKill:
		st.stop(now, do)
		st.kill(do)
	case evQuiet:
		st.quiet = true
		st.each(func(_ int, c *child) { do(actQuiet{c.id}) })
	case evRestart:
		st.restart = true
		for i := range st.slots {
			if c := st.slots[i].child; c != nil {
				st.enqueue(c.id, "restart")
			}
		}
		do(actTell{message: "rolling restart begins", slot: -1})
	}
	st.supervise(now, do)
	return actions
}

func (st *state) each(f func(slot int, c *child)) {
	for i := range st.slots {
		for _, c := range st.slots[i].all() {
			f(i, c)
		}
	}
}

// enqueue has a child replaced, once, when its turn comes.
func (st *state) enqueue(id int, reason string) {
	i, c := st.find(id)
	if c == nil || st.slots[i].child != c || st.stopping {
		return
	}
	same := func(r replacement) bool { return r.id == id }
	if slices.ContainsFunc(st.queue, same) || st.current != nil && st.current.id == id {
		return
	}
	st.queue = append(st.queue, replacement{slot: i, id: id, reason: reason})
}

// ready notes that a child consumes; a successor takes over.
func (st *state) ready(now time.Time, id int, do func(...any)) {
	i, c := st.find(id)
	if c == nil || !c.readyAt.IsZero() {
		return
	}
	c.readyAt = now
	s := &st.slots[i]
	do(actTell{message: "child consumes", slot: i, pid: c.pid, args: []any{"after", now.Sub(c.spawnedAt).Round(time.Millisecond)}})
	if s.next != c {
		return
	}
	if old := s.child; old != nil {
		old.termAt = now
		s.leaving = append(s.leaving, old)
		do(actTerm{old.id})
	}
	s.child, s.next = c, nil
	s.failures = 0
	s.restarts++
	st.current = nil
}

// recycle lets a child that has reached its job limit finish while another one is started.
func (st *state) recycle(id int) {
	i, c := st.find(id)
	if c == nil || st.slots[i].child != c || st.stopping {
		return
	}
	s := &st.slots[i]
	s.leaving = append(s.leaving, c)
	s.child, s.retryAt = nil, time.Time{}
	s.restarts++
	st.promote(s)
}

// promote makes a successor the child of a slot that has lost its own.
func (st *state) promote(s *slot) {
	if s.child == nil && s.next != nil {
		s.child, s.next = s.next, nil
		st.current = nil
	}
}

// gone removes a child that has ended, and decides when the next one is started.
func (st *state) gone(now time.Time, id int, exit Exit, do func(...any)) {
	i, c := st.find(id)
	if c == nil {
		return
	}
	s := &st.slots[i]
	s.lastExit = exit.String()
	if at := slices.Index(s.leaving, c); at >= 0 {
		s.leaving = slices.Delete(s.leaving, at, at+1)
		return
	}
	if s.next == c {
		s.next = nil
		st.replacementFailed("it ended: "+exit.String(), do)
		return
	}
	s.child = nil
	if st.stopping {
		return
	}
	s.restarts++
	if st.promote(s); s.child != nil {
		return
	}
	if exit.Code == ExitRecycled && c.beat.Started > 0 {
		s.retryAt = time.Time{}
		return
	}
	if !c.readyAt.IsZero() && now.Sub(c.readyAt) >= st.healthy {
		s.failures = 0
	}
	s.failures++
	wait := st.backoff.Delay(s.failures)
	s.retryAt = now.Add(wait)
	do(actTell{message: "the next child of this slot is started after a wait", slot: i, args: []any{"wait", wait.Round(time.Millisecond), "failures", s.failures}})
}

// replacementFailed leaves the old child in its place, and ends a rolling restart.
func (st *state) replacementFailed(why string, do func(...any)) {
	r := st.current
	if r == nil {
		return
	}
	st.current = nil
	do(actTell{bad: true, message: "the replacement of a child failed, the old one stays", slot: r.slot, args: []any{"reason", r.reason, "failure", why}})
	if !st.restart {
		return
	}
	st.restart = false
	st.queue = slices.DeleteFunc(st.queue, func(r replacement) bool { return r.reason == "restart" })
	do(actTell{bad: true, message: "rolling restart failed; the slots from this one on keep their old children", slot: r.slot})
}

func (st *state) stop(now time.Time, do func(...any)) {
	if st.stopping {
		return
	}
	st.stopping = true
	st.deadline = now.Add(st.shutdown + killDelay)
	st.relayAt = now.Add(relayEvery)
	st.queue, st.current, st.restart = nil, nil, false
	st.each(func(_ int, c *child) {
		if c.pid != 0 {
			do(actTerm{c.id})
		}
	})
}

func (st *state) kill(do func(...any)) {
	st.killed = true
	st.each(func(i int, c *child) { st.killChild(i, c, "", do) })
}

// killChild kills a child, once. Its exit is awaited like any other.
func (st *state) killChild(i int, c *child, why string, do func(...any)) {
	if c.killed || c.pid == 0 {
		return
	}
	c.killed = true
	if why != "" {
		do(actTell{bad: true, message: "killing a child", slot: i, pid: c.pid, args: []any{"reason", why}})
	}
	do(actKill{c.id})
}

// supervise does what time alone asks for.
func (st *state) supervise(now time.Time, do func(...any)) {
	st.each(func(i int, c *child) {
		switch {
		case c.spawnedAt.IsZero():
		case c.helloAt.IsZero():
			if now.Sub(c.spawnedAt) > st.boot {
				st.killChild(i, c, fmt.Sprintf("it has not said hello within boot_timeout, %v", st.boot), do)
			}
		case now.Sub(c.beatAt) > st.liveness:
			st.killChild(i, c, fmt.Sprintf("it has given no sign of life for liveness_timeout, %v", st.liveness), do)
		case !c.termAt.IsZero() && now.Sub(c.termAt) > st.shutdown+killDelay:
			st.killChild(i, c, "it has not ended within shutdown_timeout", do)
		}
	})
	if st.stopping {
		st.superviseStop(now, do)
		return
	}
	st.superviseReplacement(now, do)
	for i := range st.slots {
		s := &st.slots[i]
		if s.child != nil && !s.child.readyAt.IsZero() && now.Sub(s.child.readyAt) >= st.healthy {
			s.failures = 0
		}
		if s.child == nil && !now.Before(s.retryAt) {
			s.child = st.spawn(i, do)
		}
	}
}

func (st *state) spawn(i int, do func(...any)) *child {
	st.lastID++
	do(actSpawn{i, st.lastID})
	return &child{id: st.lastID}
}

func (st *state) superviseStop(now time.Time, do func(...any)) {
	switch {
	case st.killed:
	case !now.Before(st.deadline):
		do(actTell{bad: true, message: "children have not ended within shutdown_timeout and are killed", slot: -1})
		st.kill(do)
	case !now.Before(st.relayAt):
		st.relayAt = now.Add(relayEvery)
		st.each(func(_ int, c *child) {
			if c.pid != 0 {
				do(actTerm{c.id})
			}
		})
	}
}

// superviseReplacement does the queue, one after another.
func (st *state) superviseReplacement(now time.Time, do func(...any)) {
	if r := st.current; r != nil {
		if s := &st.slots[r.slot]; s.next != nil && now.Sub(r.since) > st.takeover {
			next := s.next
			s.leaving = append(s.leaving, next)
			s.next = nil
			st.killChild(r.slot, next, "", do)
			st.replacementFailed(fmt.Sprintf("it did not consume within %v", st.takeover), do)
		}
	}
	for st.current == nil && len(st.queue) > 0 {
		r := st.queue[0]
		st.queue = st.queue[1:]
		s := &st.slots[r.slot]
		if s.child == nil || s.child.id != r.id {
			continue // it has ended meanwhile; its successor is new anyway
		}
		r.since = now
		st.current = &r
		do(actTell{message: "replacing a child", slot: r.slot, pid: s.child.pid, args: []any{"reason", r.reason}})
		s.next = st.spawn(r.slot, do)
	}
	if st.restart && st.current == nil && len(st.queue) == 0 {
		st.restart = false
		do(actTell{message: "rolling restart is done", slot: -1})
	}
}
