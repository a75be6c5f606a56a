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

// Options configures a Swarm. Forks, Threads and Command are required.
type Options struct {
	Forks   int // slots
	Threads int // consumers of each child: the rows of its board

	// Command makes the child of a slot, numbered from 0, not started. It is called anew for
	// each spawn, from a goroutine of the swarm, and must return. The swarm adds what the child
	// inherits and a process group of its own, and makes its stdin empty. Stdout and Stderr
	// are this process's own unless Command has set them.
	Command func(slot int) (*exec.Cmd, error)
	// Config is what Child.Config is to be: any bytes. It is called like Command. nil: empty.
	Config func(slot int) ([]byte, error)

	BootTimeout     time.Duration // how long a child may take from its start until it first reports to the parent; default 30 s
	ReadyTimeout    time.Duration // a replacement must consume within; default 30 s
	LivenessTimeout time.Duration // a child that gives no sign of life for so long is killed; default 60 s
	ShutdownTimeout time.Duration // children stop within, by themselves; default 300 s. 5 s later they are killed
	MemoryLimit     int64         // resident bytes of a child, beyond which it is replaced; 0: none
	MemoryCheck     time.Duration // how often memory is looked at; default 10 s
	Backoff         retry.Curve   // the wait before a failed child is started again; default 1 s doubling to 30 s
	HealthyAfter    time.Duration // a child that has consumed for so long makes its slot's next failure the first; default 60 s

	// Observer is told of every event, in order, by the goroutine that runs the swarm: it must be
	// quick. It may call the methods of the Swarm. A panic in it is logged. nil: nobody is told.
	Observer func(Event)
	// Pulse is called once a second by the same goroutine, as long as no child is overdue with its
	// sign of life, so that the process can tell its service manager that all is well. nil: nobody is told.
	Pulse  func()
	Logger *slog.Logger // default slog.Default()
}

// complete fills in the defaults and reports every option that is wrong.
func (o *Options) complete() error {
	var problems []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf("swarm: Options."+format, args...))
		}
	}
	check(o.Forks >= 1, "Forks is %d, want at least 1", o.Forks)
	check(o.Threads >= 1, "Threads is %d, want at least 1", o.Threads)
	check(o.Command != nil, "Command is missing")
	check(o.MemoryLimit >= 0, "MemoryLimit is %d, want 0 (none) or more", o.MemoryLimit)
	for _, d := range []struct {
		name     string
		value    *time.Duration
		standard time.Duration
	}{
		{"BootTimeout", &o.BootTimeout, 30 * time.Second},
		{"ReadyTimeout", &o.ReadyTimeout, 30 * time.Second},
		{"LivenessTimeout", &o.LivenessTimeout, 60 * time.Second},
		{"ShutdownTimeout", &o.ShutdownTimeout, 300 * time.Second},
		{"MemoryCheck", &o.MemoryCheck, 10 * time.Second},
		{"HealthyAfter", &o.HealthyAfter, 60 * time.Second},
	} {
		check(*d.value >= 0, "%s is %v, want 0 (%v) or more", d.name, *d.value, d.standard)
		if *d.value == 0 {
			*d.value = d.standard
		}
	}
	if o.Backoff == (retry.Curve{}) {
		o.Backoff = retry.Curve{Base: time.Second, Factor: 2, Max: 30 * time.Second}
	}
	if o.Config == nil {
		o.Config = func(int) ([]byte, error) { return nil, nil }
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return errors.Join(problems...)
}
