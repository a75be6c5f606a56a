package worker_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/broker"
	"github.com/postburner/postburner/job"
	"github.com/postburner/postburner/worker"
)

// fakeTime runs a test in which time passes as soon as all wait. dial reaches the broker.
func fakeTime(t *testing.T, test func(t *testing.T, b *broker.Broker, dial func(context.Context) (net.Conn, error))) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := broker.New(broker.Options{})
		defer b.Close()
		test(t, b, func(context.Context) (net.Conn, error) {
			here, there := net.Pipe()
			go b.ServeConn(t.Context(), there)
			return here, nil
		})
	})
}

// pass lets time pass.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func put(t *testing.T, dial func(context.Context) (net.Conn, error), body string, ttr time.Duration) {
	t.Helper()
	conn, err := beanstalk.New(beanstalk.Options{Dial: dial})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Put(t.Context(), beanstalk.Put{Tube: tube, Body: []byte(body), TTR: ttr}); err != nil {
		t.Fatal(err)
	}
}

// work runs a pool until the returned func stops it.
func work(t *testing.T, o worker.Options, tubes ...string) (pool *worker.Pool, stop func() error) {
	t.Helper()
	o.Tubes = tubes
	pool, err := worker.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- pool.Run(ctx) }()
	return pool, func() error {
		cancel()
		return <-ended
	}
}

func TestNoJobIsReservedWhileTheServerCannotStoreAFailure(t *testing.T) {
	fakeTime(t, func(t *testing.T, b *broker.Broker, dial func(context.Context) (net.Conn, error)) {
		var log bytes.Buffer
		registry := job.NewRegistry()
		registry.Handle("k", job.HandlerFunc(func(context.Context, *job.Job) error {
			b.Fail(broker.Faults{OutOfMemory: true})
			return errors.New("no luck")
		}))
		registry.Handle("next", job.HandlerFunc(func(context.Context, *job.Job) error { return nil }))
		pool, stop := work(t, worker.Options{
			Beanstalk: beanstalk.Options{Dial: dial}, Registry: registry, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		}, tube)
		put(t, dial, body("k", ""), time.Minute)
		pass(time.Second)
		b.Fail(broker.Faults{})
		put(t, dial, body("next", ""), time.Minute)
		pass(2500 * time.Millisecond) // the first pause is 5 s ± 20 %
		if s := pool.Stats(); s.Started != 1 || s.Lost != 1 {
			t.Errorf("stats %+v during the pause, want one job started and lost", s)
		}
		if !strings.Contains(log.String(), "the server could not store a failed job") {
			t.Errorf("log: %s", log.String())
		}
		pass(10 * time.Second)
		if s := pool.Stats(); s.Done != 1 {
			t.Errorf("stats %+v after the pause, want the next job done", s)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// deafConn stops hearing its peer's answers once it has been told of a job with id 1 and deaf is set.
type deafConn struct {
	net.Conn
	deaf  *atomic.Bool
	first atomic.Bool
}

func (c *deafConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if bytes.Contains(p[:n], []byte("RESERVED 1 ")) {
		c.first.Store(true)
	}
	return n, err
}

func (c *deafConn) Write(p []byte) (int, error) {
	if c.first.Load() && c.deaf.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func TestAServerThatIsSlowToOneConsumerDelaysNoOtherLease(t *testing.T) {
	fakeTime(t, func(t *testing.T, b *broker.Broker, dial func(context.Context) (net.Conn, error)) {
		var deaf atomic.Bool
		release := make(chan struct{})
		registry := job.NewRegistry()
		registry.Handle("k", job.HandlerFunc(func(context.Context, *job.Job) error {
			<-release
			return nil
		}))
		pool, stop := work(t, worker.Options{
			Threads: 2, Registry: registry, MaxRuntime: 5 * time.Second, StuckAfter: time.Second, ShutdownTimeout: time.Second,
			Logger: slog.New(slog.DiscardHandler),
			Beanstalk: beanstalk.Options{Dial: func(ctx context.Context) (net.Conn, error) {
				conn, err := dial(ctx)
				return &deafConn{Conn: conn, deaf: &deaf}, err
			}},
		}, tube)
		put(t, dial, body("k", ""), time.Hour)
		pass(5900 * time.Millisecond) // job 1 is late, and stuck at 6 s
		deaf.Store(true)              // to settle it takes 10 s
		put(t, dial, body("k", ""), 2*time.Second)
		pass(4 * time.Second)
		if jobs := b.Jobs(tube); len(jobs) != 2 || jobs[1].Timeouts != 0 || jobs[1].State != "reserved" {
			t.Errorf("jobs %+v, want the second reserved still, its TTR never over", jobs)
		}
		close(release)
		pass(20 * time.Second)
		if s := pool.Stats(); s.Stuck != 1 || s.Lost == 0 {
			t.Errorf("stats %+v, want one handler stuck, and its job lost", s)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A server that dies between a reserve and the first question about the job must not keep the pool: it would dial for ever.
func TestAStopIsNotKeptByAServerThatIsGone(t *testing.T) {
	for name, text := range map[string]string{"a job": body("k", ""), "no job": "junk"} {
		t.Run(name, func(t *testing.T) {
			fakeTime(t, func(t *testing.T, _ *broker.Broker, _ func(context.Context) (net.Conn, error)) {
				dials := 0
				pool, stop := work(t, worker.Options{
					Registry: job.NewRegistry(), Logger: slog.New(slog.DiscardHandler), ShutdownTimeout: 2 * time.Second,
					Beanstalk: beanstalk.Options{Dial: func(context.Context) (net.Conn, error) {
						if dials++; dials > 1 {
							return nil, errors.New("refused")
						}
						here, there := net.Pipe()
						go func() {
							r := bufio.NewReader(there)
							for range 3 { // watch, ignore, reserve
								line, _ := r.ReadString('\n')
								switch {
								case strings.HasPrefix(line, "reserve"):
									_, _ = fmt.Fprintf(there, "RESERVED 1 %d\r\n%s\r\n", len(text), text)
								default:
									_, _ = fmt.Fprint(there, "WATCHING 1\r\n")
								}
							}
							_, _ = r.ReadString('\n')
							_ = there.Close() // that is its end
						}()
						return here, nil
					}},
				}, tube)
				pass(time.Minute)
				from := time.Now()
				if err := stop(); err != nil {
					t.Error(err)
				}
				if took := time.Since(from); took > 3*time.Second {
					t.Errorf("the stop took %v", took)
				}
				if s := pool.Stats(); s.Connected != 0 || dials < 2 {
					t.Errorf("stats %+v after %d dials", s, dials)
				}
			})
		})
	}
}
