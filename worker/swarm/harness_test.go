//go:build unix

package swarm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/postburner/postburner/retry"
)

// trial is a running swarm of real processes.
type trial struct {
	t     *testing.T
	swarm *Swarm
	dir   string
	log   *logBuffer
	stop  context.CancelFunc
	ended chan struct{} // closed when Run has returned
	err   error         // of Run, once ended is closed

	mu     sync.Mutex
	events []Event
	parts  func(slot, spawn int) part // called with the number of the spawn in its slot, from 0
	spawns map[int]int
}

// quick is a backoff with waits that can be told apart and are soon over.
var quick = retry.Curve{Base: 2 * time.Millisecond, Factor: 2, Max: 16 * time.Millisecond}

// always plays one role in every slot.
func always(p part) func(int, int) part { return func(int, int) part { return p } }

// first plays one part for the first child of a slot, and then another.
func first(p, then part) func(int, int) part {
	return func(_, spawn int) part {
		if spawn == 0 {
			return p
		}
		return then
	}
}

// run starts a swarm; what the test leaves of it is killed. change may adapt the options.
func run(t *testing.T, forks int, parts func(slot, spawn int) part, change func(*Options)) *trial {
	t.Helper()
	r := prepare(t, forks, parts, change)
	r.start()
	return r
}

func prepare(t *testing.T, forks int, parts func(slot, spawn int) part, change func(*Options)) *trial {
	t.Helper()
	r := &trial{t: t, dir: t.TempDir(), log: &logBuffer{}, ended: make(chan struct{}), parts: parts, spawns: map[int]int{}}
	opts := Options{
		Forks: forks, Threads: 2, Command: command, Config: r.config, Backoff: quick, Observer: r.observe,
		Logger: slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if change != nil {
		change(&opts)
	}
	var err error
	if r.swarm, err = New(opts); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *trial) start() {
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() {
		r.err = r.swarm.Run(ctx)
		close(r.ended)
	}()
	r.t.Cleanup(func() {
		stop()
		r.swarm.Kill()
		<-r.ended
		if r.t.Failed() {
			r.t.Logf("log of the swarm:\n%s", r.log)
		}
	})
}

func (r *trial) config(slot int) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.parts(slot, r.spawns[slot])
	r.spawns[slot]++
	p.Dir = r.dir
	return json.Marshal(p)
}

func (r *trial) observe(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// seen returns the events of a type so far.
func (r *trial) seen(want EventType) []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.events), func(e Event) bool { return e.Type != want })
}

func (r *trial) all() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// await waits until there have been n events of a type and returns them.
func (r *trial) await(want EventType, n int) []Event {
	r.t.Helper()
	eventually(r.t, func() (bool, string) {
		got := len(r.seen(want))
		return got >= n, fmt.Sprintf("%d events %s, want %d", got, want, n)
	})
	return r.seen(want)
}

// settled waits until each slot has one child that consumes, and returns their pids by slot.
func (r *trial) settled() []int {
	r.t.Helper()
	var pids []int
	eventually(r.t, func() (bool, string) {
		pids = nil
		status := r.swarm.Status()
		for _, slot := range status.Slots {
			if len(slot.Children) == 1 && slot.Children[0].State == StateReady {
				pids = append(pids, slot.Children[0].PID)
			}
		}
		return len(pids) == len(status.Slots), fmt.Sprintf("%+v", status)
	})
	return pids
}

// facts waits for the file of facts of a child.
func (r *trial) facts(pid int) (f facts) {
	r.t.Helper()
	eventually(r.t, func() (bool, string) {
		text, err := os.ReadFile(filepath.Join(r.dir, fmt.Sprintf("%d.json", pid)))
		if err == nil {
			err = json.Unmarshal(text, &f)
		}
		return err == nil, fmt.Sprint(err)
	})
	return f
}

func (r *trial) openGate() {
	r.t.Helper()
	if err := os.WriteFile(gatePath(r.dir), nil, 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// end stops the swarm and wants nil from Run, and no child left.
func (r *trial) end() {
	r.t.Helper()
	r.stop()
	r.finish()
}

// finish waits until Run has returned and wants nil from it, and no child left.
func (r *trial) finish() {
	r.t.Helper()
	select {
	case <-r.ended:
	case <-time.After(patience):
		r.t.Fatalf("Run did not return within %v", patience)
	}
	if r.err != nil {
		r.t.Errorf("Run returned %v, want nil", r.err)
	}
	for _, e := range r.seen(EventSpawned) {
		if exists(e.PID) {
			r.t.Errorf("child %d is left", e.PID)
		}
	}
	if spawned, exited := len(r.seen(EventSpawned)), len(r.seen(EventExited)); spawned != exited {
		r.t.Errorf("%d children were started and %d waited for", spawned, exited)
	}
}

func exists(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func send(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatalf("send %v to %d: %v", sig, pid, err)
	}
}

// logBuffer collects a log.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
