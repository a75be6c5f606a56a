package swarm

import "time"

// Status is a snapshot of a swarm.
type Status struct {
	Slots      []SlotStatus
	Quiet      bool
	Stopping   bool
	Restarting bool
}

// SlotStatus is one slot of a Status.
type SlotStatus struct {
	Children []ChildStatus // leaving ones first; the last is the slot's own
	Failures int           // in a row
	Restarts int
	LastExit string
}

// ChildStatus is one process of a slot.
type ChildStatus struct {
	PID     int
	State   string // booting, ready, leaving
	Since   time.Time
	Beat    Beat
	Running []Row
}

// Status returns a snapshot. It may be called at any time.
func (s *Swarm) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// publish makes what the loop knows the snapshot of the next Status.
func (s *Swarm) publish() {
	status := Status{Quiet: s.state.quiet, Stopping: s.state.stopping, Restarting: s.state.restart}
	for i := range s.state.slots {
		slot := &s.state.slots[i]
		out := SlotStatus{Failures: slot.failures, Restarts: slot.restarts, LastExit: slot.lastExit}
		for _, c := range slot.all() {
			state := "booting"
			switch {
			case c != slot.child && c != slot.next:
				state = "leaving"
			case !c.readyAt.IsZero():
				state = "ready"
			}
			child := ChildStatus{PID: c.pid, State: state, Since: c.spawnedAt, Beat: c.beat}
			if p := s.processes[c.id]; p != nil && p.board != nil {
				child.Running = p.board.Rows()
			}
			out.Children = append(out.Children, child)
		}
		status.Slots = append(status.Slots, out)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}
