package swarm

import (
	"slices"
	"time"

	"github.com/postburner/postburner/retry"
)

// killDelay is how long children may take beyond the shutdown timeout, which they keep by themselves.
const killDelay = 5 * time.Second

// relayEvery is how often TERM is sent again to a child that has been asked to end, in
// case it was not ready for it.
const relayEvery = time.Second

// slotProcesses is how many processes a slot has at most: one that works and one that
// leaves or takes over. Without this bound children that reach their job limit within
// seconds, each with a job that takes hours, would pile up.
const slotProcesses = 2

// limits are the settings of the state machine.
type limits struct {
	boot, ready, liveness, shutdown, healthy time.Duration
	memory                                   int64
	backoff                                  retry.Curve
}

// state is everything that the swarm decides from.
type state struct {
	limits
	slots       []slot
	lastID      int
	seen        time.Time // of the latest event
	quiet       bool
	stopping    bool
	restart     bool // a rolling restart is on
	replacement replacement
}

// slot is one place for a child. It is never given up: whenever it has no child that
// stays, one is started as soon as due has come.
type slot struct {
	children []child // the oldest first
	failures int     // in a row
	due      time.Time
	spawns   int
}

// phase is how far a child has come.
type phase int

const (
	spawning  phase = iota // asked for; not known to exist
	booting                // exists
	up                     // has reported to the parent
	consuming              // has had all its consumers connected
)

// cause is why a child that lives has to be replaced.
type cause string

const (
	causeNone    cause = ""
	causeMemory  cause = "over the memory limit"
	causeStuck   cause = "a handler is stuck"
	causeRestart cause = "rolling restart"
)

// child is one process. Its id is never used again, unlike its pid.
type child struct {
	id      int
	phase   phase
	quiet   bool // has been told
	started uint64
	mark    cause

	// leaving children do not count any more: they finish what they run and end, for one of
	// the reasons that follow. Those that are not leaving are the slot's staying children: the one that
	// works and, if there is a second, the one that is to take over.
	leaving     bool
	recycling   bool // it said so
	terminating bool // asked to end, with TERM
	killed      bool

	readyAt     time.Time // when it began to consume
	bootBy      time.Time // the first message
	heartbeatBy time.Time // the next sign of life
	termAgain   time.Time // the next TERM
	killBy      time.Time
}

// replacement is the one replacement of a living child that is going on, so that capacity never
// dips by more than one child's.
type replacement struct {
	on    bool
	slot  int
	id    int // the child to be replaced
	cause cause
	by    time.Time // its successor must consume by then; zero until there is one
	ready bool      // the successor consumes; what is left is the end of the old child
}

func (s state) clone() state {
	s.slots = slices.Clone(s.slots)
	for i := range s.slots {
		s.slots[i].children = slices.Clone(s.slots[i].children)
	}
	return s
}

// over reports whether there is nothing left to do.
func (s state) over() bool {
	return s.stopping && !slices.ContainsFunc(s.slots, func(s slot) bool { return len(s.children) > 0 })
}

// find returns the child of an id and its slot; nil if it is gone. The pointer holds until a child comes or goes.
func (s *state) find(id int) (int, *child) {
	for i := range s.slots {
		for j := range s.slots[i].children {
			if c := &s.slots[i].children[j]; c.id == id {
				return i, c
			}
		}
	}
	return -1, nil
}

// each calls f for every child.
func (s *state) each(f func(slot int, c *child)) {
	for i := range s.slots {
		for j := range s.slots[i].children {
			f(i, &s.slots[i].children[j])
		}
	}
}

// staying returns the children that stay: none, the one that works, or that and its successor.
func (s *slot) staying() []*child {
	var staying []*child
	for j := range s.children {
		if !s.children[j].leaving {
			staying = append(staying, &s.children[j])
		}
	}
	return staying
}

// isOverdue reports whether a child has not given the sign of life that is due.
func (s state) isOverdue(now time.Time) (overdue bool) {
	s.each(func(_ int, c *child) {
		overdue = overdue || c.phase >= up && now.After(c.heartbeatBy)
	})
	return overdue
}

// wake returns when time alone asks for the next step, at most a second from now.
func (s *state) wake(now time.Time) time.Time {
	next := now.Add(tickEvery)
	sooner := func(t time.Time) {
		if t.After(now) && t.Before(next) {
			next = t
		}
	}
	sooner(s.replacement.by)
	for i := range s.slots {
		sooner(s.slots[i].due)
	}
	s.each(func(_ int, c *child) {
		for _, t := range []time.Time{c.bootBy, c.heartbeatBy, c.termAgain, c.killBy} {
			sooner(t)
		}
	})
	return next
}
