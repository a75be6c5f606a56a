package beanstalk

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Options configures a Conn. Only URL, or Dial in its place, is required.
type Options struct {
	URL          string        // beanstalk://HOST[:PORT], beanstalks://HOST[:PORT] (TLS) or unix:///PATH
	TLS          *tls.Config   // for beanstalks://; nil: the system's roots, TLS 1.2 at least
	Tubes        []string      // what Reserve watches; default: the tube "default"
	DialTimeout  time.Duration // default 10 s
	ReplyTimeout time.Duration // how long a reply may take, beyond the timeout of a reserve; default 10 s

	// Dial replaces the network; URL is then only a name for messages.
	Dial func(ctx context.Context) (net.Conn, error)

	// Redial is called before each dial that follows a failed dial or a lost
	// connection, with the number of failures in a row and the last of them. It
	// waits as long as it likes, no longer than ctx; what it returns other than nil
	// ends the command. Default: 100 ms doubling to 30 s, ±20 %. A dial after a
	// Disconnect or an interrupted Reserve follows no failure.
	Redial func(ctx context.Context, failures int, err error) error
}

// Conn is a connection to one server. It dials at its first command and again at the
// command after it broke, and watches its tubes anew each time.
//
// A Conn is safe for concurrent use, but its commands run one after another: a
// Reserve that waits holds up the rest. Each command has a deadline, after which the
// connection counts as lost. Ending a command's context closes the connection if the
// command has been sent.
type Conn struct {
	opts   Options
	server endpoint

	turn     chan struct{} // held by the command that runs; guards what follows
	link     *link
	failures int
	lastErr  error
	epoch    uint64

	up atomic.Bool

	mu          sync.Mutex // guards what follows, never held over I/O
	interrupted bool
	closed      bool
	live        *link                   // the link, for those who close it from outside
	reserving   *link                   // the link on which a Reserve waits now
	dialling    context.CancelCauseFunc // ends a dial, and the wait before it
	forReserve  bool                    // what is dialled for
}

// New checks the options and returns a Conn that has not dialled yet. Its error names
// every option that is wrong.
func New(opts Options) (*Conn, error) {
	c := &Conn{opts: opts, turn: make(chan struct{}, 1)}
	var problems []error
	if opts.Dial == nil {
		var err error
		if c.server, err = parseURL(opts.URL, opts.TLS); err != nil {
			problems = append(problems, err)
		}
	} else {
		c.server.address = MaskURL(opts.URL)
	}
	if len(opts.Tubes) == 0 {
		c.opts.Tubes = []string{"default"}
	}
	c.opts.Tubes = slices.Clone(c.opts.Tubes)
	for _, tube := range c.opts.Tubes {
		if err := CheckTube(tube); err != nil {
			problems = append(problems, err)
		}
	}
	if opts.DialTimeout <= 0 {
		c.opts.DialTimeout = 10 * time.Second
	}
	if opts.ReplyTimeout <= 0 {
		c.opts.ReplyTimeout = 10 * time.Second
	}
	if opts.Redial == nil {
		c.opts.Redial = waitBeforeRedial
	}
	return c, errors.Join(problems...)
}

// waitBeforeRedial is the default of Options.Redial.
func waitBeforeRedial(ctx context.Context, failures int, _ error) error {
	wait := 30 * time.Second
	if failures < 10 {
		wait = min(wait, 100*time.Millisecond<<(failures-1))
	}
	wait += time.Duration((rand.Float64()*0.4 - 0.2) * float64(wait))
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Connected reports whether the connection is up as far as this side knows.
func (c *Conn) Connected() bool { return c.up.Load() }

// Interrupt ends a Reserve that waits now, by closing the connection under it, and
// makes each later one answer ErrInterrupted without dialling until Resume. A job that
// the server hands over in that instant goes back by itself. No other command is
// disturbed, and a job already returned stays reserved.
func (c *Conn) Interrupt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.interrupted = true
	if c.reserving != nil {
		c.reserving.abandon()
	}
	if c.dialling != nil && c.forReserve {
		c.dialling(ErrInterrupted)
	}
}

// Resume lets Reserve work again after an Interrupt.
func (c *Conn) Resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.interrupted = false
}

// Disconnect drops the connection on purpose: the jobs that it holds are ready again at
// once, with no release or timeout counted. The next command dials anew.
func (c *Conn) Disconnect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live != nil {
		c.live.abandon()
		c.up.Store(false)
	}
}

// Close drops the connection for good; every later command answers ErrClosed. It
// always returns nil.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.live != nil {
		c.live.abandon()
		c.up.Store(false)
	}
	if c.dialling != nil {
		c.dialling(ErrClosed)
	}
	return nil
}

// acquire waits for this command's turn. A context that has ended by then must not reach
// watch, which would close the connection under the jobs that it holds.
func (c *Conn) acquire(ctx context.Context) error {
	if ctx.Err() != nil {
		return notSent(context.Cause(ctx))
	}
	select {
	case c.turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case c.turn <- struct{}{}:
		if ctx.Err() == nil {
			return nil
		}
		c.release()
	case <-ctx.Done():
	}
	return notSent(context.Cause(ctx))
}

func (c *Conn) release() { <-c.turn }

func notSent(err error) error {
	if errors.Is(err, ErrInterrupted) || errors.Is(err, ErrClosed) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrNotSent, err)
}

// connect returns the live link, dialling if there is none. It is called with the turn.
func (c *Conn) connect(ctx context.Context, reserve bool) (*link, error) {
	if c.link != nil {
		if !c.link.gone.Load() {
			return c.link, nil
		}
		c.drop(nil)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.mu.Lock()
	switch {
	case c.closed:
		cancel(ErrClosed)
	case reserve && c.interrupted:
		cancel(ErrInterrupted)
	}
	c.dialling, c.forReserve = cancel, reserve
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.dialling = nil
		c.mu.Unlock()
	}()
	for {
		if ctx.Err() != nil {
			return nil, notSent(context.Cause(ctx))
		}
		if c.failures > 0 {
			if err := c.opts.Redial(ctx, c.failures, c.lastErr); err != nil {
				return nil, notSent(err)
			}
		}
		conn, err := c.dial(ctx)
		if err == nil {
			c.adopt(conn)
			return c.link, nil
		}
		if ctx.Err() != nil {
			return nil, notSent(context.Cause(ctx))
		}
		c.failures++
		c.lastErr = fmt.Errorf("dial beanstalkd at %s: %w (is it running there, and reachable from here?)", c.server.address, err)
	}
}

func (c *Conn) dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.DialTimeout)
	defer cancel()
	if c.opts.Dial != nil {
		return c.opts.Dial(ctx)
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, c.server.network, c.server.address)
	if err != nil || c.server.tls == nil {
		return conn, err
	}
	secured := tls.Client(conn, c.server.tls)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close() // the handshake's error is the one that tells
		return nil, err
	}
	return secured, nil
}

// adopt makes a fresh connection the live link.
func (c *Conn) adopt(conn net.Conn) {
	c.epoch++
	c.link = newLink(conn, c.epoch)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live = c.link
	if c.closed {
		c.link.abandon()
		return
	}
	c.up.Store(true)
}

// drop forgets the link. A nil err says that it was dropped on purpose.
func (c *Conn) drop(err error) {
	deliberate := c.link.gone.Load()
	c.link.close()
	c.link = nil
	c.mu.Lock()
	c.live = nil
	c.up.Store(false)
	c.mu.Unlock()
	if err != nil && !deliberate {
		c.failures++
		c.lastErr = err
	}
}
