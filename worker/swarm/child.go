package swarm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// heartbeatEvery is how often a child says how it is.
const heartbeatEvery = time.Second

// firstLook is when a child first looks whether it is ready; it waits twice as long each
// time, up to heartbeatEvery, so that being ready is known soon and waiting for the server costs nothing.
const firstLook = 2 * time.Millisecond

// statusPatience is how long a message may take to be written. After that it is dropped:
// a parent that does not read must not hold up the child.
const statusPatience = 500 * time.Millisecond

// errNoChild is what Join returns in a process that no swarm started.
var errNoChild = errors.New("this process was not started by a swarm: run the command that starts the workers instead")

// Child is the swarm as a child process sees it.
type Child struct {
	Slot   int    // numbered from 0
	Config []byte // what Options.Config returned for this child
	Board  *Board
	// Quiet says that the swarm is quiet already: this child must not begin to take jobs. Run calls quiet as well.
	Quiet bool
	// Suspects are the jobs that were running when earlier children died. Run tells of later ones.
	Suspects []Suspect
	// Vigilant says that nobody can tell how the swarm before this one ended.
	Vigilant bool

	status    *os.File
	quiet     chan struct{} // the parent asks for quiet
	accusing  chan []Suspect
	orphaned  chan struct{} // closed when the parent is gone
	news      chan struct{} // there is something to say before the next heartbeat
	recycling atomic.Bool
	stuck     atomic.Bool
}

// Join takes up the files that the parent handed down and waits for the configuration. A
// child process calls it once, as early as it can. From then on the process ends by itself if the
// parent is gone: Run calls stop, and what has not ended 5 s after the shutdown timeout exits with status 1.
func Join() (*Child, error) {
	guard, status, board, err := inherit()
	if err != nil {
		return nil, fmt.Errorf("join the swarm: %w", err)
	}
	return join(guard, status, board, os.Exit)
}

// join is Join with the files found, and the way out of the process.
func join(guard, status, board *os.File, exit func(code int)) (*Child, error) {
	lines := bufio.NewReader(guard)
	first, err := lines.ReadBytes('\n')
	var w handshake
	if err == nil {
		err = json.Unmarshal(first, &w)
	}
	if err != nil {
		return nil, fmt.Errorf("join the swarm: read the configuration: %w", err)
	}
	memory, err := share(board, w.Threads*rowSize, true)
	_ = board.Close() // the mapping stays
	if err != nil {
		return nil, fmt.Errorf("join the swarm: %w", err)
	}
	c := &Child{
		Slot: w.Slot, Config: w.Config, Quiet: w.Quiet, Suspects: w.Suspects, Vigilant: w.Vigilant, Board: boardOn(memory), status: status,
		quiet: make(chan struct{}, 1), accusing: make(chan []Suspect, 1), orphaned: make(chan struct{}), news: make(chan struct{}, 1),
	}
	go c.readCommands(guard, lines, time.Duration(w.ShutdownTimeout)+killDelay, exit)
	return c, nil
}

// readCommands passes on the parent's commands. It ends when the parent does, and sees to it that this process follows.
func (c *Child) readCommands(guard *os.File, lines *bufio.Reader, patience time.Duration, exit func(code int)) {
	defer func() { _ = guard.Close() }() // nothing more can come of it
	for {
		line, err := lines.ReadString('\n')
		if err != nil { // io.EOF if the parent has ended, and nothing else means anything better
			break
		}
		if strings.TrimSuffix(line, "\n") == commandQuiet {
			nudge(c.quiet)
		} else if accused, ok := decodeSuspects(line); ok {
			c.accuse(accused)
		}
	}
	close(c.orphaned)
	time.AfterFunc(patience, func() {
		time.AfterFunc(time.Second, func() { exit(1) }) // should nobody read what is said next
		fmt.Fprintf(os.Stderr, "postburner child %d: the parent is gone and the jobs have not ended within %v: exiting\n", os.Getpid(), patience)
		exit(1)
	})
}

// accuse leaves suspects for Run, behind those that it has not seen yet. Only readCommands calls it.
func (c *Child) accuse(accused []Suspect) {
	select {
	case unseen := <-c.accusing:
		accused = append(unseen, accused...)
	default:
	}
	c.accusing <- accused
}

// nudge leaves a sign that is seen once, whenever the receiver comes to it.
func nudge(sign chan<- struct{}) {
	select {
	case sign <- struct{}{}:
	default: // there is one already
	}
}

// Controls are how the swarm reaches the work of a child. All must return soon.
type Controls struct {
	Heartbeat func() Heartbeat // how the work goes
	Stop      func()           // called once when the parent is gone
	Quiet     func()           // called when the parent asks for it
	Suspect   func([]Suspect)  // called when another child has died; nil: the work does not care
}

// Run reports at once and then, each second until ctx ends, what Heartbeat returns; once more at the end. ctx
// must last until the child's work is done, drain included: without heartbeats it is killed.
//
// The child counts as ready, and replaces an older one if it was started for that, once Heartbeat says that all
// consumers are connected, or that they are quiet. An error says that nothing can be said to the parent though it lives.
func (c *Child) Run(ctx context.Context, work Controls) error {
	if c.Quiet {
		work.Quiet()
	}
	orphaned, ready, wait := c.orphaned, false, firstLook
	said := time.Time{}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for over := false; ; {
		m := message{Recycling: c.recycling.Load(), Stuck: c.stuck.Load(), Heartbeat: work.Heartbeat()}
		turned := !ready && (m.Quiet || m.Threads > 0 && m.Connected == m.Threads)
		ready = ready || turned
		m.Ready = ready
		if over || turned || m.Recycling || m.Stuck || time.Since(said) >= heartbeatEvery {
			said = time.Now()
			if err := c.say(m); err != nil || over {
				return err
			}
		}
		if wait = min(2*wait, heartbeatEvery); ready {
			wait = heartbeatEvery
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-c.news:
		case <-orphaned:
			orphaned = nil
			work.Stop()
		case <-c.quiet:
			work.Quiet()
		case accused := <-c.accusing:
			if work.Suspect != nil {
				work.Suspect(accused)
			}
		case <-ctx.Done():
			over = true
		}
	}
}

// Recycling announces that the child has reached its job limit: its replacement is
// started while it finishes what it runs. It should then exit with ExitRecycled.
func (c *Child) Recycling() {
	c.recycling.Store(true)
	nudge(c.news)
}

// Stuck announces that a handler cannot be ended: the child is asked to stop as soon as its successor consumes.
func (c *Child) Stuck() {
	c.stuck.Store(true)
	nudge(c.news)
}

// say sends a message, or drops it if the parent does not read; the next one says it all again.
func (c *Child) say(m message) error {
	line, err := encodeLine(m)
	if err == nil {
		err = c.status.SetWriteDeadline(time.Now().Add(statusPatience))
	}
	if err == nil {
		_, err = c.status.Write(line)
	}
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, syscall.EPIPE) {
		return nil // a parent that is gone is noticed on the guard pipe
	}
	return fmt.Errorf("tell the parent how this child is: %w", err)
}
