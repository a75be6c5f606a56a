package swarm

import (
	"encoding/json"
	"fmt"
	"os/exec"
)

// message is one line of the status pipe.
type message struct {
	Type string `json:"type"` // hello, ready, beat, recycling, stuck
	Beat *Beat  `json:"beat,omitempty"`
}

const (
	typeHello     = "hello"
	typeReady     = "ready"
	typeBeat      = "beat"
	typeRecycling = "recycling"
	typeStuck     = "stuck"
)

// Beat is what a child says of itself each second. Counters are since its start.
type Beat struct {
	Threads   int  `json:"threads"`
	Connected int  `json:"connected"`
	Busy      int  `json:"busy"`
	Quiet     bool `json:"quiet,omitempty"`

	Started            uint64 `json:"started"`
	Done               uint64 `json:"done"`
	Retried            uint64 `json:"retried"`
	Discarded          uint64 `json:"discarded"`
	Buried             uint64 `json:"buried"`
	Lost               uint64 `json:"lost"`
	Interrupted        uint64 `json:"interrupted"`
	Stuck              uint64 `json:"stuck"`
	PossibleDuplicates uint64 `json:"possible_duplicates"`
}

// event translates a message for the state machine.
func (m message) event(id int) (any, error) {
	switch {
	case m.Type == typeHello:
		return evHello{id}, nil
	case m.Type == typeReady:
		return evReady{id}, nil
	case m.Type == typeBeat && m.Beat != nil:
		return evBeat{id, *m.Beat}, nil
	case m.Type == typeRecycling:
		return evRecycling{id}, nil
	case m.Type == typeStuck:
		return evReplace{id, "a handler is stuck"}, nil
	}
	return nil, fmt.Errorf("unknown message of type %q", m.Type)
}

func parseMessage(line []byte) (m message, err error) {
	err = json.Unmarshal(line, &m)
	return m, err
}

// Commands of the guard pipe, a line each, behind the configuration.
const commandQuiet = "quiet\n"

// Exit is how a child ended.
type Exit struct {
	Slot       int
	PID        int
	Code       int    // -1 if a signal ended it, or it never started
	Signal     string // such as SIGKILL; "" if none did
	SpawnError error  // it never started
	Running    []Row  // what its board says that it was running
}

func (e Exit) String() string {
	switch {
	case e.SpawnError != nil:
		return e.SpawnError.Error()
	case e.Signal != "":
		return "ended by " + e.Signal
	}
	return fmt.Sprint("exit code ", e.Code)
}

// exitOf reads how a command ended.
func exitOf(cmd *exec.Cmd) Exit {
	return Exit{PID: cmd.Process.Pid, Code: cmd.ProcessState.ExitCode(), Signal: signalName(cmd.ProcessState)}
}
