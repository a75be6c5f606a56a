package swarm

import (
	"time"

	"github.com/postburner/postburner/retry"
)

// limits are the times of the state machine.
type limits struct {
	// takeover is how long a replacement may take until it consumes.
	boot, takeover, liveness, shutdown, healthy time.Duration
	backoff                                     retry.Curve
}

// killDelay is how long children may take beyond the shutdown timeout, which they keep by themselves.
const killDelay = 5 * time.Second

// relayEvery is how often TERM is sent again while the swarm stops, for a child that was
// not ready for it.
const relayEvery = time.Second

// state is everything that the swarm decides from.
type state struct {
	limits
	slots    []slot
	lastID   int
	stopping bool
	killed   bool
	deadline time.Time // of the stop, then KILL
	relayAt  time.Time // of the next TERM
	quiet    bool
	queue    []replacement // to do, one at a time
	current  *replacement  // being done
	restart  bool          // a rolling restart is on
}

// slot is one place for a child. It is never given up: a slot without a child starts
// one as soon as retryAt has come.
type slot struct {
	child    *child   // does the work
	next     *child   // is to take over once it is ready
	leaving  []*child // finish what they run
	failures int      // in a row
	retryAt  time.Time
	restarts int
	lastExit string
}

// child is one process. Its id is never used again, unlike its pid.
type child struct {
	id        int
	pid       int
	spawnedAt time.Time
	helloAt   time.Time // zero: has not said it
	readyAt   time.Time
	beatAt    time.Time
	beat      Beat
	killed    bool
	termAt    time.Time // when it was asked to end; zero: it was not, or leaves by itself
}

// replacement is a child to be replaced though it lives.
type replacement struct {
	slot   int
	id     int // the child, lest a younger one suffers for it
	reason string
	since  time.Time // of the start of its successor
}

// all returns the children of a slot.
func (s *slot) all() []*child {
	children := append([]*child(nil), s.leaving...)
	if s.next != nil {
		children = append(children, s.next)
	}
	if s.child != nil {
		children = append(children, s.child)
	}
	return children
}

// find returns the child of an id and its slot; nil if it is gone.
func (st *state) find(id int) (int, *child) {
	for i := range st.slots {
		for _, c := range st.slots[i].all() {
			if c.id == id {
				return i, c
			}
		}
	}
	return -1, nil
}

// count returns how many children there are.
func (st *state) count() (n int) {
	for i := range st.slots {
		n += len(st.slots[i].all())
	}
	return n
}
