// Package broker is beanstalkd's protocol in memory: every command, state and limit of
// beanstalkd 1.12, for development, demonstrations and tests. Its jobs live as long as
// the process; production uses beanstalkd.
//
// A [Broker] serves any net.Conn, and tells the time with plain package time, so a test
// inside testing/synctest can let hours pass at once over a net.Pipe. [Broker.Fail]
// makes it misbehave as a real server can.
package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// DefaultMaxJobSize is beanstalkd's own default limit of a body, in bytes.
const DefaultMaxJobSize = 65535

// Options configures a Broker. All have defaults.
type Options struct {
	MaxJobSize int // of a body, in bytes; default DefaultMaxJobSize
}

// Faults are the ways in which a broker can be made to fail.
type Faults struct {
	Refuse      bool // new connections are closed at once
	Stall       bool // nothing is answered, on any connection
	Draining    bool // put is answered with DRAINING
	OutOfMemory bool // put and release with a delay are answered OUT_OF_MEMORY, bury INTERNAL_ERROR, as with a full disk
}

// Broker is one server. The zero value is of no use; make one with New.
type Broker struct {
	engine *engine

	serving sync.WaitGroup

	mu        sync.Mutex // guards what follows
	faults    Faults
	changed   chan struct{} // closed and made anew when faults change
	listeners []net.Listener
	conns     map[net.Conn]context.CancelFunc
	closed    bool
}

// New returns a broker that listens nowhere yet.
func New(opts Options) *Broker {
	if opts.MaxJobSize <= 0 {
		opts.MaxJobSize = DefaultMaxJobSize
	}
	return &Broker{engine: newEngine(opts.MaxJobSize), changed: make(chan struct{}), conns: make(map[net.Conn]context.CancelFunc)}
}

// Serve accepts connections until ctx ends or Close is called; then it closes the
// listener and all connections, and returns nil once nothing it started is left. Any
// other end is an error of the listener.
func (b *Broker) Serve(ctx context.Context, listener net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = b.Close() }) // always nil
	defer stop()
	if !b.listen(listener) {
		return nil
	}
	var failure error
	for {
		conn, err := listener.Accept()
		if err != nil {
			if b.isClosed() {
				break
			}
			if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
				continue
			}
			failure = fmt.Errorf("broker: accept: %w", err)
			break
		}
		if b.Faults().Refuse {
			_ = conn.Close() // that is the fault
			continue
		}
		b.serving.Go(func() { b.ServeConn(ctx, conn) })
	}
	_ = b.Close() // always nil
	b.serving.Wait()
	return failure
}

// listen has Close close the listener.
func (b *Broker) listen(listener net.Listener) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listeners = append(b.listeners, listener)
	if b.closed {
		_ = listener.Close() // nobody is served any more
	}
	return !b.closed
}

// register has Cut close a connection, and tell of it.
func (b *Broker) register(c net.Conn, hangUp context.CancelFunc) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conns[c] = hangUp
	if b.closed || b.faults.Refuse { // since it was accepted
		hangUp()
	}
}

func (b *Broker) unregister(c net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.conns, c)
}

func (b *Broker) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// ServeConn serves one connection until it ends, ctx ends or Close is called. The jobs
// that it holds by then are ready again.
func (b *Broker) ServeConn(ctx context.Context, conn net.Conn) {
	ctx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	b.register(conn, hangUp)
	defer b.unregister(conn)
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // that is what ends it
	defer stop()
	s := newSession(b, conn, ctx.Done())
	defer s.end()
	s.serve()
}

// Close ends Serve and every connection. It always returns nil.
func (b *Broker) Close() error {
	b.mu.Lock()
	b.closed = true
	for _, listener := range b.listeners {
		_ = listener.Close() // closed already is as good
	}
	b.mu.Unlock()
	b.Cut()
	b.engine.stop()
	return nil
}

// Cut closes every connection now; new ones are served.
func (b *Broker) Cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c, hangUp := range b.conns {
		hangUp()
		_ = c.Close() // gone already is as good
	}
}

// Fail has the broker fail in the given ways from now on; the zero Faults end that.
func (b *Broker) Fail(f Faults) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = f
	close(b.changed)
	b.changed = make(chan struct{})
	b.engine.setFaults(f)
}

// Faults returns the ways in which the broker fails now.
func (b *Broker) Faults() Faults {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.faults
}

// stalled returns a channel that is closed when the faults change, nil if nothing stalls.
func (b *Broker) stalled() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.faults.Stall {
		return nil
	}
	return b.changed
}

// Job is what a broker knows of a job.
type Job struct {
	ID       uint64
	Tube     string
	State    string // ready, delayed, reserved or buried
	Priority uint32
	Delay    time.Duration
	TTR      time.Duration
	Body     []byte

	Reserves, Timeouts, Releases, Buries, Kicks int
}

// Jobs returns the jobs of a tube in whatever state, in the order of their ids; beanstalkd itself cannot list them.
func (b *Broker) Jobs(tube string) []Job { return b.engine.jobsOf(tube) }
