//go:build unix

package swarm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/postburner/postburner/retry"
)

func TestStopEndsTheSwarmInEveryPhase(t *testing.T) {
	t.Parallel()
	slow := retry.Curve{Base: time.Hour}
	for _, test := range []struct {
		name  string
		forks int
		parts func(slot, spawn int) part
		opts  func(*Options)
		until func(r *trial) // the phase is reached
	}{
		{"before anything has happened", 3, always(part{Role: working}), nil, func(*trial) {}},
		{"between two spawns", 8, always(part{Role: working}), nil, func(r *trial) { r.await(EventSpawned, 2) }},
		{"all consume", 2, always(part{Role: working}), nil, func(r *trial) { r.settled() }},
		{"the server is away", 2, always(part{Role: unready}), nil, func(r *trial) { r.await(EventHello, 2) }},
		{"a child has died and its slot waits", 2, always(part{Role: leaving, Code: 1}), func(o *Options) { o.Backoff = slow }, func(r *trial) { r.await(EventExited, 2) }},
		{"no child can be started", 2, always(part{Role: working}), func(o *Options) {
			o.Command = func(int) (*exec.Cmd, error) { return nil, errors.New("none") }
		}, func(r *trial) { r.await(EventSpawnFailed, 5) }},
		{"a rolling restart is on", 2, first(part{Role: working}, part{Role: unready}), nil, func(r *trial) {
			r.settled()
			r.swarm.Restart()
			r.await(EventHello, 3)
		}},
		{"a child recycles", 1, first(part{Role: recycling, Jobs: 1}, part{Role: working}), nil, func(r *trial) {
			r.await(EventRecycling, 1)
			r.openGate()
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := run(t, test.forks, test.parts, test.opts)
			test.until(r)
			r.end()
			stopping := false
			for _, e := range r.all() {
				stopping = stopping || e.Type == EventStopping
				if stopping && e.Type == EventSpawnFailed {
					t.Errorf("after the stop a spawn was tried: %v", e.Err)
				}
			}
		})
	}
}

func TestASwarmThatIsStoppedBeforeItRunsStartsNothing(t *testing.T) {
	t.Parallel()
	called := false
	s, err := New(Options{Forks: 2, Threads: 1, Command: func(int) (*exec.Cmd, error) {
		called = true
		return nil, errors.New("none")
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Run(ctx); err != nil || called {
		t.Errorf("Run returned %v, Command was called: %v; want nil and false", err, called)
	}
}

func TestAChildThatStopsWhileItIsStartedIsNotLeft(t *testing.T) {
	t.Parallel()
	for _, kill := range []bool{false, true} {
		t.Run(map[bool]string{false: "stop", true: "kill"}[kill], func(t *testing.T) {
			t.Parallel()
			entered, goOn := make(chan struct{}), make(chan struct{})
			r := run(t, 2, always(part{Role: working}), func(o *Options) {
				o.Command = func(slot int) (*exec.Cmd, error) {
					close(entered) // panics if there is a second spawn
					<-goOn
					return command(slot)
				}
			})
			<-entered
			if kill {
				r.swarm.Kill()
			} else {
				r.stop()
			}
			r.await(EventStopping, 1)
			close(goOn)
			r.finish()
			if n := len(r.seen(EventSpawned)); n != 0 {
				t.Errorf("%d children were started after the stop", n)
			}
		})
	}
}

func TestStopWaitsForWhatRuns(t *testing.T) {
	t.Parallel()
	r := run(t, 2, always(part{Role: busy}), nil)
	pids := r.settled()
	r.stop()
	r.await(EventStopping, 1)
	eventually(t, func() (bool, string) {
		for _, slot := range r.swarm.Status().Slots {
			if slot.Children[0].State != StateLeaving {
				return false, "not leaving"
			}
		}
		return true, ""
	})
	for _, pid := range pids {
		if !exists(pid) {
			t.Errorf("child %d is gone before its job is done", pid)
		}
	}
	r.openGate()
	r.finish()
	for _, e := range r.seen(EventExited) {
		if e.Exit.Code != 0 {
			t.Errorf("child %d ended with %v, want code 0", e.PID, e.Exit)
		}
	}
}

func TestChildrenThatDoNotStopAreKilledAfterTheirTime(t *testing.T) {
	t.Parallel()
	r := run(t, 2, always(part{Role: deaf}), func(o *Options) { o.ShutdownTimeout = 100 * time.Millisecond })
	r.settled()
	start := time.Now()
	r.end()
	if took := time.Since(start); took < killDelay {
		t.Errorf("they were killed after %v, before the time was over", took)
	}
	for _, e := range r.seen(EventExited) {
		if e.Exit.Signal != "SIGKILL" {
			t.Errorf("child %d ended with %v, want SIGKILL", e.PID, e.Exit)
		}
	}
}

// Children that would take longer to stop than the test waits show that Kill does not wait for them.
func TestKillWaitsForNothing(t *testing.T) {
	t.Parallel()
	for _, role := range []string{deaf, hanging} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			r := run(t, 2, always(part{Role: role}), func(o *Options) { o.ShutdownTimeout, o.BootTimeout = 2*patience, 2*patience })
			for _, e := range r.await(EventSpawned, 2) {
				r.facts(e.PID)
			}
			r.stop()
			r.await(EventStopping, 1)
			r.swarm.Kill()
			r.finish()
		})
	}
}

// orphans starts a parent in a process of its own, kills it, and returns its children.
func orphans(t *testing.T, role string) (dir string, children []int) {
	t.Helper()
	dir = t.TempDir()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), playVariable+"=parent", "SWARM_TEST_DIR="+dir, "SWARM_TEST_ROLE="+role)
	parent.Stderr = os.Stderr
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	dead := false
	end := func() {
		if !dead {
			dead = true
			_ = parent.Process.Kill() // gone already is fine
			_ = parent.Wait()         // it says that it was killed
		}
	}
	t.Cleanup(func() {
		end()
		for _, pid := range children {
			_ = syscall.Kill(pid, syscall.SIGKILL) // gone already is what is wanted
		}
	})
	eventually(t, func() (bool, string) {
		children = nil
		names, err := filepath.Glob(filepath.Join(dir, "*.json"))
		for _, name := range names {
			var f facts
			text, err := os.ReadFile(name)
			if err == nil {
				err = json.Unmarshal(text, &f)
			}
			if err != nil {
				return false, err.Error()
			}
			children = append(children, f.PID)
		}
		return err == nil && len(children) == 3, fmt.Sprintf("%d children, %v", len(children), err)
	})
	end()
	return dir, children
}

func gone(children []int) func() (bool, string) {
	return func() (bool, string) {
		for _, pid := range children {
			if running(pid) {
				return false, fmt.Sprintf("child %d is left", pid)
			}
		}
		return true, ""
	}
}

// running reports whether a process runs. One that has ended but that nobody has waited for does not.
func running(pid int) bool {
	out, err := exec.Command("ps", "-o", "stat=", "-p", fmt.Sprint(pid)).Output()
	return err == nil && len(out) > 0 && out[0] != 'Z'
}

func TestNoIdleChildOutlivesAKilledParent(t *testing.T) {
	t.Parallel()
	_, children := orphans(t, working)
	eventually(t, gone(children))
}

func TestABusyChildOfAKilledParentFinishesItsJob(t *testing.T) {
	t.Parallel()
	dir, children := orphans(t, busy)
	for _, pid := range children {
		if !running(pid) {
			t.Errorf("child %d is gone before its job is done", pid)
		}
	}
	if err := os.WriteFile(gatePath(dir), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, gone(children))
}

// These have a shutdown timeout of 1 s and ignore that they are asked to stop, or have not come far enough to be asked.
func TestAChildOfAKilledParentThatDoesNotStopExitsByItself(t *testing.T) {
	t.Parallel()
	for _, role := range []string{deaf, hanging} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			_, children := orphans(t, role)
			eventually(t, gone(children))
		})
	}
}
