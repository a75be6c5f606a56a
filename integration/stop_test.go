//go:build unix

package integration_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/postburner/postburner/broker/brokertest"
	"github.com/postburner/postburner/internal/testwait"
	"github.com/postburner/postburner/job"
)

// forksOf runs a test once with the jobs in children and once in the worker's own process.
func forksOf(t *testing.T, test func(t *testing.T, forks int)) {
	for _, forks := range []int{2, 0} {
		t.Run(fmt.Sprintf("forks %d", forks), func(t *testing.T) { test(t, forks) })
	}
}

func TestAnIdleWorkerStopsAtOnce(t *testing.T) {
	forksOf(t, func(t *testing.T, forks int) {
		server := brokertest.StartBeanstalkd(t)
		w := startWorker(t, workerOptions{URL: server.URL(), Forks: forks, Threads: 5, Keys: "timeout: 60"})
		w.consuming(dialRaw(t, server.Addr()), 5*max(1, forks))
		start := time.Now()
		w.stop()
		// A reserve that was waited for would take up to 60 s; ten seconds are no matter of speed.
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("an idle worker took %v to stop: it waited for its reserves", took)
		} else if took > time.Second {
			t.Logf("an idle worker took %v to stop, over the 1 s that it takes on an idle machine", took)
		}
	})
}

func TestTermLetsRunningJobsFinishAndStartsNoOther(t *testing.T) {
	forksOf(t, func(t *testing.T, forks int) {
		server := brokertest.StartBeanstalkd(t)
		w := startWorker(t, workerOptions{URL: server.URL(), Forks: forks, Threads: 2, Keys: "timeout: 60"})
		c := dialRaw(t, server.Addr())
		consumers := 2 * max(1, forks)
		w.consuming(c, consumers)
		gate, open := w.gate("gate")
		hold := fmt.Sprintf(`,"gate":%q`, gate)
		for i := range consumers - 1 {
			c.put(tube, 1, 0, 60, activeJob("hold", i, hold))
		}
		running := func(n int) func() (bool, string) {
			return func() (bool, string) {
				got := len(w.entries("start"))
				return got == n, fmt.Sprintf("%d jobs started, want %d", got, n)
			}
		}
		testwait.Until(t, running(consumers-1))

		w.signal(syscall.SIGTERM)
		// The idle consumer leaves; those that hold a job stay connected until it is done.
		w.consuming(c, consumers-1)
		after := c.put(tube, 0, 0, 60, activeJob("record", 100, ""))
		open()
		if code := w.wait(); code != 0 {
			t.Fatalf("exit code %d, want 0", code)
		}
		if got := len(w.entries("end")); got != consumers-1 {
			t.Errorf("%d of %d running jobs finished", got, consumers-1)
		}
		if got := len(w.entries("start")); got != consumers-1 {
			t.Errorf("%d jobs were started, want %d: one started after TERM", got, consumers-1)
		}
		if state := c.stats("stats-job %d", after)["state"]; state != "ready" {
			t.Errorf("the job put after TERM is %q, want ready", state)
		}
		if left := c.jobs(tube); left != 1 {
			t.Errorf("%d jobs are left, want only the one put after TERM", left)
		}
	})
}

func TestJobsThatOutlastTheShutdownTimeoutAreHandedBack(t *testing.T) {
	forksOf(t, func(t *testing.T, forks int) {
		server := brokertest.StartBeanstalkd(t)
		w := startWorker(t, workerOptions{URL: server.URL(), Forks: forks, Threads: 1, Keys: "shutdown_timeout: 1"})
		c := dialRaw(t, server.Addr())
		w.consuming(c, max(1, forks))
		gate, _ := w.gate("never")
		id := c.put(tube, 1, 0, 60, activeJob("hold", 1, fmt.Sprintf(`,"gate":%q`, gate)))
		testwait.Until(t, func() (bool, string) { return len(w.entries("start")) == 1, "the job has not started" })
		w.stop()

		cancelled := w.entries("cancelled")
		if len(cancelled) != 1 || cancelled[0].Note != job.ErrShutdown.Error() {
			t.Errorf("the handler's context ended with %v, want cause %q", cancelled, job.ErrShutdown)
		}
		stats := c.stats("stats-job %d", id)
		for key, want := range map[string]string{"state": "ready", "releases": "0", "timeouts": "0", "buries": "0", "pri": "1"} {
			if stats[key] != want {
				t.Errorf("%s of the handed back job is %s, want %s", key, stats[key], want)
			}
		}
	})
}

func TestASecondTermEndsTheWorkerAtOnce(t *testing.T) {
	forksOf(t, func(t *testing.T, forks int) {
		server := brokertest.StartBeanstalkd(t)
		w := startWorker(t, workerOptions{URL: server.URL(), Forks: forks, Threads: 1, Keys: "shutdown_timeout: 3000"})
		c := dialRaw(t, server.Addr())
		w.consuming(c, max(1, forks))
		gate, _ := w.gate("never")
		id := c.put(tube, 1, 0, 3000, activeJob("stubborn", 1, fmt.Sprintf(`,"gate":%q`, gate)))
		testwait.Until(t, func() (bool, string) { return len(w.entries("start")) == 1, "the job has not started" })
		children := w.children()
		w.signal(syscall.SIGTERM)
		testwait.Until(t, func() (bool, string) {
			return c.count(tube, "current-watching") == 1, "idle consumers have not left after the first TERM"
		})
		w.signal(syscall.SIGTERM)
		if code := w.wait(); code != 1 {
			t.Errorf("exit code %d, want 1: running jobs were abandoned", code)
		}
		gone(t, children)
		testwait.Until(t, func() (bool, string) {
			state := c.stats("stats-job %d", id)["state"]
			return state == "ready", "the abandoned job is " + state
		})
	})
}

// gone waits until none of the processes exists.
func gone(t testing.TB, pids []int) {
	t.Helper()
	testwait.Until(t, func() (bool, string) {
		var alive []string
		for _, pid := range pids {
			if syscall.Kill(pid, 0) == nil {
				alive = append(alive, fmt.Sprint(pid))
			}
		}
		return len(alive) == 0, "still alive: " + strings.Join(alive, " ")
	})
}
