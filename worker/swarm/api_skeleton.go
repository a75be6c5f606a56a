// Package swarm keeps child processes alive: it starts them, listens to them,
// replaces those that end, and stops them. It knows nothing of jobs.
package swarm

import (
	"context"
	"log/slog"
	"os/exec"
	"time"

	"github.com/postburner/postburner/retry"
)

// Options configures a Swarm.
type Options struct {
	Forks   int
	Threads int // consumers of each child: the size of its board
	// Command makes the child of a slot (0 … Forks-1), not started. The swarm adds
	// ExtraFiles, process group, stdin. It is called anew for each spawn.
	Command func(slot int) (*exec.Cmd, error)
	// Config is the first message of the guard pipe; called anew for each spawn.
	Config          func(slot int) ([]byte, error)
	BootTimeout     time.Duration // hello within; default 30 s
	ReadyTimeout    time.Duration // a replacement's consumers connected within; default 30 s
	LivenessTimeout time.Duration // default 60 s
	ShutdownTimeout time.Duration // default 300 s; the swarm waits 5 s more, then KILLs
	MemoryLimit     int64         // bytes RSS of a child; 0 = none
	Backoff         retry.Curve   // default 1 s doubling to 30 s
	HealthyAfter    time.Duration // a child that lived this long resets its slot's backoff; default 60 s
	Observer        func(Event)   // every spawn, hello, ready, exit, kill …; nil = none
	Logger          *slog.Logger
}

type Swarm struct{}

func New(opts Options) (*Swarm, error) { panic("unwritten") }

// Run supervises until ctx ends (stop: TERM relayed each second, ShutdownTimeout + 5 s, KILL), then returns nil
// when no child is left. Kill makes it immediate.
func (s *Swarm) Run(ctx context.Context) error { panic("unwritten") }
func (s *Swarm) Kill()                         { panic("unwritten") } // second TERM: KILL all now
func (s *Swarm) Quiet()                        { panic("unwritten") } // sticky, inherited by later children
func (s *Swarm) Restart()                      { panic("unwritten") } // rolling

// Status is a snapshot of every slot.
func (s *Swarm) Status() Status { panic("unwritten") }

type Status struct { /* slots: pid, state, age, beat counters, RSS, restarts, last exit; quiet; restarting */
}
type Event struct { /* type, slot, pid, exit status … */
}

// Child is the other end, in the child process.
type Child struct {
	Slot   int
	Config []byte
	Board  *Board
}

// Join takes up the inherited files; it must be called once, early, in a process that Command started.
func Join() (*Child, error) { panic("unwritten") }

// Run says hello, then beats each second with what beat returns until ctx ends. stop is called once when
// the parent is gone (guard pipe EOF) or asks for it; quiet when asked for quiet.
func (c *Child) Run(ctx context.Context, beat func() Beat, stop, quiet func()) error {
	panic("unwritten")
}
func (c *Child) Recycling() { panic("unwritten") }

// Beat is a child's cumulative state.
type Beat struct {
	Connected, Busy, Threads                                     int
	Started, Done, Retried, Discarded, Buried, Lost, Interrupted uint64
	Quiet                                                        bool
}

// Board is the shared memory page. It implements worker.Board structurally.
type Board struct{}

func (b *Board) Start(consumer int, id uint64, kind string, at time.Time) { panic("unwritten") }
func (b *Board) Finish(consumer int)                                      { panic("unwritten") }
