package swarm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// beatEvery is how often a child says how it is.
const beatEvery = time.Second

// readyEvery is how often a child looks whether it is ready, until it is.
const readyEvery = 10 * time.Millisecond

// statusPatience is how long a message may take to be written; after that it is dropped,
// since a parent that does not read must not hold up the child's work.
const statusPatience = 500 * time.Millisecond

// Child is the swarm as a child process sees it.
type Child struct {
	Config []byte // what Options.Config returned for this child
	Board  *Board

	guard  *bufio.Reader
	status *os.File
	mu     sync.Mutex // one message at a time
}

// errNoChild is Join outside a child process.
var errNoChild = errors.New("this process was not started by a swarm: run the command that starts the workers instead")

// Join takes up the files that the parent handed down, and says hello. A child process
// calls it once, as early as it can: boot_timeout runs until then.
func Join(threads int) (*Child, error) {
	guard, status, memory, err := inherit(threads)
	if err != nil {
		return nil, fmt.Errorf("join the swarm: %w", err)
	}
	c := &Child{Board: boardOn(memory), guard: bufio.NewReader(guard), status: status}
	c.say(message{Type: typeHello})
	c.Config, err = c.guard.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("join the swarm: read the configuration: %w", err)
	}
	c.Config = c.Config[:len(c.Config)-1]
	return c, nil
}

// Run beats with what beat returns until ctx ends. It calls stop when the parent is gone
// and quiet when the parent asks for that; both must return soon. Once the beat says that all
// consumers are connected, or quiet, the child counts as ready.
func (c *Child) Run(ctx context.Context, beat func() Beat, stop, quiet func()) {
	go c.obey(stop, quiet) // ends with the parent or this process
	c.awaitReady(ctx, beat)
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		c.beat(beat())
		select {
		case <-tick.C:
		case <-ctx.Done():
			c.beat(beat())
			return
		}
	}
}

func (c *Child) beat(b Beat) { c.say(message{Type: typeBeat, Beat: &b}) }

// awaitReady says ready as soon as that is true, beating meanwhile.
func (c *Child) awaitReady(ctx context.Context, beat func() Beat) {
	look := time.NewTicker(readyEvery)
	defer look.Stop()
	last := time.Now()
	for {
		b := beat()
		if b.Connected == b.Threads || b.Quiet || b.Started > 0 {
			c.say(message{Type: typeReady})
			return
		}
		if time.Since(last) >= beatEvery {
			last = time.Now()
			c.beat(b)
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// obey carries out the parent's commands until the parent is gone.
func (c *Child) obey(stop, quiet func()) {
	for {
		line, err := c.guard.ReadString('\n')
		switch {
		case err != nil: // io.EOF if the parent has ended, and nothing else means anything better
			stop()
			return
		case line == commandQuiet:
			quiet()
		}
	}
}

// Recycling announces that the child has reached its job limit: its replacement is
// started while it finishes what it runs. It should then exit with ExitRecycled.
func (c *Child) Recycling() { c.say(message{Type: typeRecycling}) }

// Stuck announces that a handler cannot be ended: the child is replaced as soon as its successor consumes.
func (c *Child) Stuck() { c.say(message{Type: typeStuck}) }

// say sends one message, or drops it: a parent that is gone is noticed on the guard pipe, and one
// that does not read must not hold up the child.
func (c *Child) say(m message) {
	line, err := json.Marshal(m)
	if err != nil {
		panic(err) // a message is numbers and words
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status.SetWriteDeadline(time.Now().Add(statusPatience)) == nil {
		_, _ = io.Writer(c.status).Write(append(line, '\n')) // whole or not at all: it is shorter than the pipe's atomic unit
	}
}
