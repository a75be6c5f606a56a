package swarm

import (
	"fmt"
	"time"
)

// EventType is what happened in a swarm.
type EventType string

// The events. Those of a child carry its slot and, once it has one, its PID.
const (
	EventSpawned        EventType = "spawned"         // a child process was started
	EventSpawnFailed    EventType = "spawn_failed"    // it could not be: Err; the next try comes after Wait
	EventHello          EventType = "hello"           // the child is up
	EventReady          EventType = "ready"           // its consumers are connected
	EventRecycling      EventType = "recycling"       // it has reached its job limit and finishes what it runs
	EventReplace        EventType = "replace"         // it is to be replaced once no other replacement is going on: Reason
	EventReplaceFailed  EventType = "replace_failed"  // its replacement did not come up, so it stays: Reason
	EventKilled         EventType = "killed"          // it was sent SIGKILL: Reason
	EventExited         EventType = "exited"          // it has ended: Exit; Wait until the next one, if that was a failure
	EventQuiet          EventType = "quiet"           // all children, also later ones, are told to take no more jobs
	EventRestart        EventType = "restart"         // a rolling restart begins
	EventRestartDone    EventType = "restart_done"    // every child that it was to replace has gone
	EventRestartFailed  EventType = "restart_failed"  // a replacement did not come up: Reason; children not yet replaced stay
	EventRestartDropped EventType = "restart_dropped" // the swarm stops before the restart is done
	EventStopping       EventType = "stopping"        // all children are asked to end
)

// Event is one thing that happened. Fields that do not belong to the type are zero.
type Event struct {
	Type   EventType
	Slot   int // -1 if it concerns the whole swarm
	PID    int
	Reason string
	Wait   time.Duration
	Err    error
	Exit   Exit

	id       int  // of the child; 0 if it concerns the whole swarm
	expected bool // this end was asked for or announced
}

// Exit is how a child ended.
type Exit struct {
	Code      int           // -1 if a signal ended it
	Signal    string        // such as SIGKILL; "" if none did
	Age       time.Duration // since its start
	Running   []Row         // what it was running, from its board
	Heartbeat Heartbeat     // the last that it said of itself
}

func (e Exit) String() string {
	if e.Signal != "" {
		return "ended by " + e.Signal
	}
	return fmt.Sprint("exit code ", e.Code)
}
