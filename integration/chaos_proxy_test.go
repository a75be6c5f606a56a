//go:build unix

package integration_test

import (
	"net"
	"sync"
	"testing"
	"time"
)

// faultProxy passes TCP connections on to a server, and can cut, stall or slow them.
type faultProxy struct {
	backend  string
	listener net.Listener
	running  sync.WaitGroup

	mu      sync.Mutex // guards what follows
	pairs   map[*proxied]struct{}
	closed  bool
	stalled chan struct{} // closed when the stall is over; nil: there is none
	delay   time.Duration // of each piece of data
}

// proxied is one connection with the server's end of it.
type proxied struct {
	client, server net.Conn
	over           chan struct{} // closed once it is shut
	once           sync.Once
}

func (p *proxied) shut() {
	p.once.Do(func() {
		close(p.over)
		_ = p.client.Close() // either end may have gone already
		_ = p.server.Close()
	})
}

func startFaultProxy(t testing.TB, backend string) *faultProxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &faultProxy{backend: backend, listener: listener, pairs: map[*proxied]struct{}{}}
	p.running.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

func (p *faultProxy) url() string { return "beanstalk://" + p.listener.Addr().String() }

func (p *faultProxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.running.Go(func() { p.serve(client) })
	}
}

func (p *faultProxy) serve(client net.Conn) {
	server, err := net.DialTimeout("tcp", p.backend, 5*time.Second)
	if err != nil {
		_ = client.Close() // as if the server itself had refused it
		return
	}
	pair := &proxied{client: client, server: server, over: make(chan struct{})}
	if !p.add(pair) {
		pair.shut()
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.pass(pair, server, client) })
	both.Go(func() { p.pass(pair, client, server) })
	both.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pairs, pair)
}

func (p *faultProxy) add(pair *proxied) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.pairs[pair] = struct{}{}
	return true
}

// pass copies one direction until either end has gone.
func (p *faultProxy) pass(pair *proxied, to, from net.Conn) {
	defer pair.shut()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if !p.hold(pair) {
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// hold waits as the faults ask. It returns false if the connection has been shut meanwhile.
func (p *faultProxy) hold(pair *proxied) bool {
	p.mu.Lock()
	stalled, delay := p.stalled, p.delay
	p.mu.Unlock()
	if stalled != nil {
		select {
		case <-stalled:
		case <-pair.over:
			return false
		}
	}
	if delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-pair.over:
			return false
		}
	}
	return true
}

// cut closes every connection there is. New ones are served.
func (p *faultProxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for pair := range p.pairs {
		pair.shut()
	}
}

// stall holds all data, old connections' and new ones', until the returned func is called.
func (p *faultProxy) stall() (resume func()) {
	stalled := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalled = stalled
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.stalled = nil
		close(stalled)
	})
}

// slow delays each piece of data; 0 ends that.
func (p *faultProxy) slow(delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = delay
}

// close ends the proxy and waits until nothing of it is left.
func (p *faultProxy) close() {
	_ = p.listener.Close() // a second time does no harm
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cut()
	p.running.Wait()
}
