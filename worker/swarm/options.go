package swarm

import (
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"time"

	"github.com/postburner/postburner/retry"
)

// ExitRecycled is the exit code of a child that has reached its job limit: it is
// replaced at once, without the wait that follows a failure.
const ExitRecycled = 99

// Options configures a Swarm. Forks, Threads, Command and Config are required.
type Options struct {
	Forks   int // slots
	Threads int // consumers of each child: the rows of its board

	// Command makes the child of a slot, numbered from 0, not started. The swarm adds what
	// a child inherits, and a process group of its own. It is called anew for each spawn.
	Command func(slot int) (*exec.Cmd, error)
	// Config is what Child.Config is to be; it is called anew for each spawn.
	Config func(slot int) ([]byte, error)

	BootTimeout     time.Duration // a child must say hello within; default 30 s
	ReadyTimeout    time.Duration // a replacement must consume within; default 30 s
	LivenessTimeout time.Duration // a child that gives no sign of life for so long is killed; default 60 s
	ShutdownTimeout time.Duration // children stop within, by themselves; default 300 s. 5 s later they are killed
	MemoryLimit     int64         // resident bytes of a child, beyond which it is replaced; 0: none
	MemoryCheck     time.Duration // how often that is looked at; default 10 s
	Backoff         retry.Curve   // the wait before a failed child is started again; default 1 s doubling to 30 s
	HealthyAfter    time.Duration // a child that has consumed for so long makes its slot's next failure the first; default 60 s

	Exited func(e Exit) // told of each child's end, by the swarm's own goroutine; nil: nobody is
	Logger *slog.Logger // default slog.Default()
}

func (o *Options) complete() error {
	var problems []error
	for name, n := range map[string]int{"Forks": o.Forks, "Threads": o.Threads} {
		if n < 1 {
			problems = append(problems, fmt.Errorf("swarm: Options.%s is %d, want at least 1", name, n))
		}
	}
	if o.Command == nil || o.Config == nil {
		problems = append(problems, errors.New("swarm: Options.Command and Options.Config are required"))
	}
	for _, d := range []struct {
		value    *time.Duration
		standard time.Duration
	}{
		{&o.BootTimeout, 30 * time.Second},
		{&o.ReadyTimeout, 30 * time.Second},
		{&o.LivenessTimeout, 60 * time.Second},
		{&o.ShutdownTimeout, 300 * time.Second},
		{&o.MemoryCheck, 10 * time.Second},
		{&o.HealthyAfter, 60 * time.Second},
	} {
		if *d.value <= 0 {
			*d.value = d.standard
		}
	}
	if o.Backoff == (retry.Curve{}) {
		o.Backoff = retry.Curve{Base: time.Second, Factor: 2, Max: 30 * time.Second}
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return errors.Join(problems...)
}
