//go:build unix

package integration_test

import (
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/postburner/postburner/broker/brokertest"
	"github.com/postburner/postburner/internal/testwait"
)

func TestBeanstalkdKilledAndRestartedUnderLoadLosesNothing(t *testing.T) {
	const jobs = 3000
	server := brokertest.StartBeanstalkd(t, "-b", t.TempDir())
	w := startWorker(t, workerOptions{URL: server.URL(), Forks: 2, Threads: 5})
	c := dialRaw(t, server.Addr())
	w.consuming(c, 10)
	bodies := make([]string, jobs)
	for i := range bodies {
		bodies[i] = activeJob("nap", i, `,"millis":5`)
	}
	c.putAll(tube, 65536, 60, bodies)
	before := w.children()
	for round := 1; round <= 3; round++ {
		want := jobs * round / 4
		testwait.Until(t, func() (bool, string) {
			got := len(w.entries("start"))
			return got >= want, fmt.Sprintf("%d jobs started, want %d before kill %d", got, want, round)
		})
		server.Kill()
		server.Restart()
		c = dialRaw(t, server.Addr())
		w.consuming(c, 10)
	}
	testwait.Until(t, func() (bool, string) { return c.jobs(tube) == 0, fmt.Sprintf("%d jobs left", c.jobs(tube)) })
	seen := map[int]bool{}
	for _, e := range w.entries("end") {
		seen[e.N] = true
	}
	if len(seen) != jobs {
		t.Errorf("%d of %d jobs were executed", len(seen), jobs)
	}
	// What was running or unanswered at a kill may run again, nothing else.
	if extra := len(w.entries("start")) - jobs; extra > 3*10*2 {
		t.Errorf("%d executions too many for three kills over ten consumers", extra)
	}
	sameProcesses(t, before, w.children())
	w.stop()
}

func TestAWorkerStartedBeforeBeanstalkdWaitsForIt(t *testing.T) {
	server := brokertest.StartBeanstalkd(t)
	server.Kill()
	w := startWorker(t, workerOptions{URL: server.URL(), Forks: 2, Threads: 2})
	testwait.Until(t, func() (bool, string) {
		return len(w.children()) == 2 && w.log.Contains(server.Addr()), "the worker has not said that it waits for the server"
	})
	server.Restart()
	c := dialRaw(t, server.Addr())
	w.consuming(c, 4)
	c.put(tube, 1, 0, 60, activeJob("record", 1, ""))
	testwait.Until(t, func() (bool, string) { return c.jobs(tube) == 0, "the job is not done" })
	w.stop()
}

// A server that accepts and then says nothing is given up at the deadline (reserve
// timeout + 10 s) and dialled again.
func TestASilentServerIsNoticedAndDialledAgain(t *testing.T) {
	t.Parallel()
	server := brokertest.StartBeanstalkd(t)
	front := &switchboard{t: t, backend: server.Addr()}
	front.silent.Store(true)
	addr := front.listen()
	w := startWorker(t, workerOptions{URL: "beanstalk://" + addr, Forks: 0, Threads: 2, Keys: "timeout: 1"})
	testwait.Until(t, func() (bool, string) {
		n := front.accepted.Load()
		return n >= 2, fmt.Sprintf("%d connections to the silent server, want those of both consumers", n)
	})
	front.silent.Store(false) // new connections are served from here on, the silent ones stay silent
	c := dialRaw(t, server.Addr())
	w.consuming(c, 2)
	c.put(tube, 1, 0, 60, activeJob("record", 1, ""))
	testwait.Until(t, func() (bool, string) { return c.jobs(tube) == 0, "the job is not done" })
	w.stop()
}

// Fifty lost connections leave no descriptor behind.
func TestReconnectingLeaksNothing(t *testing.T) {
	server := brokertest.StartBeanstalkd(t)
	front := &switchboard{t: t, backend: server.Addr()}
	w := startWorker(t, workerOptions{URL: "beanstalk://" + front.listen(), Forks: 0, Threads: 25})
	c := dialRaw(t, server.Addr())
	w.consuming(c, 25)
	before := openFiles(t, w.pid())
	for range 2 { // times 25 consumers
		want := front.accepted.Load() + 25
		front.cut()
		testwait.Until(t, func() (bool, string) {
			n := front.accepted.Load()
			return n >= want, fmt.Sprintf("%d connections in all, want %d", n, want)
		})
		w.consuming(c, 25)
	}
	testwait.Until(t, func() (bool, string) {
		after := openFiles(t, w.pid())
		return after <= before, fmt.Sprintf("%d open files, after fifty reconnects %d", before, after)
	})
	w.stop()
}

// switchboard passes connections on to a server, or takes them and says nothing.
type switchboard struct {
	t        testing.TB
	backend  string
	silent   atomic.Bool
	accepted atomic.Int64
	cutters  chan func()
}

func (s *switchboard) listen() string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = listener.Close() })
	s.cutters = make(chan func(), 1000)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // closed by the cleanup
			}
			s.accepted.Add(1)
			if s.silent.Load() {
				s.t.Cleanup(func() { _ = conn.Close() })
				continue
			}
			server, err := net.Dial("tcp", s.backend)
			if err != nil {
				_ = conn.Close()
				continue
			}
			shut := func() { _ = conn.Close(); _ = server.Close() }
			s.cutters <- shut
			pass := func(to, from net.Conn) {
				defer shut()
				_, _ = io.Copy(to, from) // either end may go at any time
			}
			go pass(server, conn)
			go pass(conn, server)
		}
	}()
	return listener.Addr().String()
}

// cut closes every connection that passes through now.
func (s *switchboard) cut() {
	for {
		select {
		case shut := <-s.cutters:
			shut()
		default:
			return
		}
	}
}
