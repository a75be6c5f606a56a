package swarm

import "encoding/json"

// message is one line of the status pipe. Each is a whole snapshot, so that one that got
// lost is made good by the next. The first tells that the child is up.
type message struct {
	Ready     bool `json:"ready,omitempty"`     // all consumers have been connected
	Recycling bool `json:"recycling,omitempty"` // the job limit is reached
	Stuck     bool `json:"stuck,omitempty"`     // a handler cannot be ended
	Heartbeat
}

// messageSize is the most bytes that a message may take: POSIX writes that many to a pipe
// whole or not at all.
const messageSize = 512

// Heartbeat is what a child says of itself each second. Counters are since its start.
type Heartbeat struct {
	Threads   int  `json:"threads"`
	Connected int  `json:"connected"`
	Busy      int  `json:"busy"`
	Quiet     bool `json:"quiet,omitempty"`

	Started            uint64 `json:"started"`
	Done               uint64 `json:"done"`
	Retried            uint64 `json:"retried,omitempty"`
	Discarded          uint64 `json:"discarded,omitempty"`
	Buried             uint64 `json:"buried,omitempty"`
	Lost               uint64 `json:"lost,omitempty"`
	Interrupted        uint64 `json:"interrupted,omitempty"`
	StuckHandlers      uint64 `json:"stuck_handlers,omitempty"`
	PossibleDuplicates uint64 `json:"possible_duplicates,omitempty"`
}

// addCounters adds the counters of another child.
func (b *Heartbeat) addCounters(other Heartbeat) {
	b.Started += other.Started
	b.Done += other.Done
	b.Retried += other.Retried
	b.Discarded += other.Discarded
	b.Buried += other.Buried
	b.Lost += other.Lost
	b.Interrupted += other.Interrupted
	b.StuckHandlers += other.StuckHandlers
	b.PossibleDuplicates += other.PossibleDuplicates
}

// handshake is the first line of the guard pipe. Lines after it are commands; a child ignores those that
// it does not know, since its parent may be of a later version.
type handshake struct {
	Slot            int       `json:"slot"`
	Threads         int       `json:"threads"`
	Quiet           bool      `json:"quiet,omitempty"`
	Suspects        []Suspect `json:"suspects,omitempty"`
	Vigilant        bool      `json:"vigilant,omitempty"`
	ShutdownTimeout int64     `json:"shutdown_timeout_ns"`
	Config          []byte    `json:"config"` // base64, so that it may hold anything
}

// commandQuiet is a command of the guard pipe.
const commandQuiet = "quiet"

// encodeLine is the JSON of a message, ended by a newline.
func encodeLine(v any) ([]byte, error) {
	line, err := json.Marshal(v)
	return append(line, '\n'), err
}
