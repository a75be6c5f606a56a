package swarm

import "time"

// Status is a snapshot of a swarm.
type Status struct {
	Slots      []SlotStatus
	Quiet      bool
	Stopping   bool
	Restarting bool // a rolling restart is on
	// Total has the counters of all children there ever were, as far as they have said, and the
	// Threads, Connected and Busy of those that live.
	Total Heartbeat
}

// SlotStatus is one slot of a Status.
type SlotStatus struct {
	Children []ChildStatus // the oldest first; none while the slot waits after a failure
	Failures int           // in a row
	NextTry  time.Time     // when the next child is started, if there is none and the slot waits
	Restarts int           // children started, but for the first
	LastExit string        // how the child that ended last did; "" if none has
}

// ChildState is what a child is about.
type ChildState string

// The states of a child.
const (
	StateStarting ChildState = "starting" // the process is being started, or has not reported to the parent
	StateUp       ChildState = "up"       // has reported; not all consumers have been connected
	StateReady    ChildState = "ready"    // consumes
	StateLeaving  ChildState = "leaving"  // finishes what it runs, or is being ended
)

// ChildStatus is one process of a slot.
type ChildStatus struct {
	PID       int // 0 until it exists
	State     ChildState
	Replace   string    // why it is to be replaced; "" if it is not
	Since     time.Time // its start
	Heartbeat Heartbeat // the last that it said of itself
	RSS       int64     // resident bytes when they were last looked at; 0: not known
	Running   []Row
}

// Status returns a snapshot. It may be called at any time, from any goroutine, and waits for no child.
func (s *Swarm) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := Status{Quiet: s.state.quiet, Stopping: s.state.stopping, Restarting: s.state.restart, Total: s.past}
	for i, slot := range s.state.slots {
		out := SlotStatus{Failures: slot.failures, Restarts: max(0, slot.spawns-1), LastExit: s.lastExits[i]}
		if len(slot.children) == 0 && slot.due.After(s.state.seen) {
			out.NextTry = slot.due
		}
		for _, c := range slot.children {
			out.Children = append(out.Children, s.childStatus(c, &status.Total))
		}
		status.Slots = append(status.Slots, out)
	}
	return status
}

func (s *Swarm) childStatus(c child, total *Heartbeat) ChildStatus {
	out := ChildStatus{State: StateStarting, Replace: string(c.mark)}
	switch {
	case c.leaving:
		out.State = StateLeaving
	case c.phase == consuming:
		out.State = StateReady
	case c.phase == up:
		out.State = StateUp
	}
	if p := s.processes[c.id]; p != nil {
		out.PID, out.Since, out.Heartbeat, out.RSS, out.Running = p.pid(), p.began, p.heartbeat, p.rss, p.board.Rows()
		total.addCounters(p.heartbeat)
		total.Threads += p.heartbeat.Threads
		total.Connected += p.heartbeat.Connected
		total.Busy += p.heartbeat.Busy
	}
	return out
}
