package main

import (
	"bytes"
	"net"
	"os/exec"
	"slices"
	"time"
)

// start measures how long a replacement takes: from the moment in which the server
// hands over the job that reaches a child's limit to the first reserve of the child
// that was started because of it, seen by a proxy on the wire.
func (b *bench) start() error {
	p, err := newProxy(b.server.addr)
	if err != nil {
		return err
	}
	defer func() { _ = p.listener.Close() }()
	cmd, err := b.worker("beanstalk://"+p.listener.Addr().String(), "forks: 1\n      threads: 1\n      gc_limit: 1")
	if err != nil {
		return err
	}
	stop, err := startAll([]*exec.Cmd{cmd})
	if err != nil {
		return err
	}
	control, err := b.server.dial()
	if err != nil {
		return err
	}
	defer func() { _ = control.conn.Close() }()
	var times []time.Duration
	for range 31 {
		if err := control.await("current-waiting", 1); err != nil {
			return err
		}
		p.clear()
		if err := control.fill(workTube, 1, body); err != nil {
			return err
		}
		times = append(times, p.firstReserve().Sub(p.handedOver()))
	}
	if err := stop(); err != nil {
		return err
	}
	slices.Sort(times)
	b.print("\n### Start of a child\n\nFrom the job that reaches the old child's limit to the first reserve of its replacement: median %v, worst %v of %d.\n",
		times[len(times)/2].Round(100*time.Microsecond), times[len(times)-1].Round(100*time.Microsecond), len(times))
	return nil
}

// proxy passes bytes on and notes when it sees a job handed over and a first reserve.
type proxy struct {
	listener net.Listener
	backend  string
	reserved chan time.Time
	handed   chan time.Time
}

func newProxy(backend string) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener, backend, make(chan time.Time, 100), make(chan time.Time, 100)}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // closed at the end of the measurement
			}
			go p.pass(conn)
		}
	}()
	return p, nil
}

func (p *proxy) pass(conn net.Conn) {
	server, err := net.Dial("tcp", p.backend)
	if err != nil {
		_ = conn.Close() // the worker dials again
		return
	}
	go p.watch(conn, server, "RESERVED ", "", p.handed)
	p.watch(server, conn, "reserve", workTube, p.reserved)
}

// watch copies until either end closes and notes when the word first passes; a connection
// that has named another tube than the wanted one is not looked at.
func (p *proxy) watch(to, from net.Conn, word, tube string, seen chan<- time.Time) {
	defer func() { _, _ = to.Close(), from.Close() }()
	named := tube == ""
	noted := false
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		named = named || bytes.Contains(buf[:n], []byte(tube))
		if named && !noted && bytes.Contains(buf[:n], []byte(word)) {
			noted = true
			seen <- time.Now()
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// clear forgets what was noted so far.
func (p *proxy) clear() {
	for {
		select {
		case <-p.reserved:
		case <-p.handed:
		default:
			return
		}
	}
}

func (p *proxy) handedOver() time.Time   { return <-p.handed }
func (p *proxy) firstReserve() time.Time { return <-p.reserved }
