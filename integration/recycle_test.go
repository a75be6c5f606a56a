//go:build unix

package integration_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/postburner/postburner/broker/brokertest"
	"github.com/postburner/postburner/internal/testwait"
)

func TestChildrenAreRecycledAtTheLimitWithoutADipInCapacity(t *testing.T) {
	const (
		jobs  = 1000
		limit = 25
		forks = 2
	)
	brokertest.Each(t, func(t *testing.T, server brokertest.Server) {
		w := startWorker(t, workerOptions{URL: server.URL(), Forks: forks, Threads: 5, Keys: fmt.Sprintf("gc_limit: %d", limit)})
		c := dialRaw(t, server.Addr())
		w.consuming(c, forks*5)
		bodies := make([]string, jobs)
		for i := range bodies {
			bodies[i] = activeJob("nap", i, `,"millis":20`)
		}
		c.putAll(tube, 65536, 300, bodies)
		dip := watchCapacity(t, c, forks*5, func() bool { return c.jobs(tube) == 0 })
		if dip > time.Second {
			t.Errorf("capacity was below %d consumers for %v at a stretch, want at most 1 s", forks*5, dip)
		}
		starts := w.entries("start")
		onceEach(t, starts, jobs)
		perProcess := map[int]int{}
		for _, e := range starts {
			perProcess[e.PID]++
		}
		for pid, n := range perProcess {
			if n > limit {
				t.Errorf("child %d started %d jobs, want at most %d", pid, n, limit)
			}
		}
		if want := jobs / limit; len(perProcess) < want {
			t.Errorf("%d children ran the jobs, want at least %d", len(perProcess), want)
		}
		full := 0
		for _, n := range perProcess {
			if n == limit {
				full++
			}
		}
		testwait.Until(t, func() (bool, string) {
			recycled := w.log.Count(`msg="child recycled"`)
			return recycled == full, fmt.Sprintf("%d children were recycled, %d have run %d jobs", recycled, full, limit)
		})
		w.stop()
		for line := range strings.Lines(w.log.String()) {
			if strings.Contains(line, "level=error") || strings.Contains(line, `msg="child recycled"`) && !strings.Contains(line, "code=99") {
				t.Errorf("recycling logged: %s", line)
			}
		}
	})
}

// watchCapacity looks at the consumers of the tube until done says so and returns the
// longest stretch with fewer than want. A stretch in which this process itself was
// held up does not count.
func watchCapacity(t testing.TB, c *rawClient, want int, done func() bool) time.Duration {
	t.Helper()
	var longest, stretch time.Duration
	deadline := time.Now().Add(testwait.Patience)
	last := time.Now()
	for !done() {
		low := c.count(tube, "current-watching") < want
		now := time.Now()
		if gap := now.Sub(last); low && gap < 100*time.Millisecond {
			stretch += gap
		}
		if !low {
			stretch = 0
		}
		longest = max(longest, stretch)
		last = now
		if now.After(deadline) {
			t.Fatalf("not done within %v", testwait.Patience)
		}
	}
	return longest
}

func TestWithoutForksTheWorkerDrainsAtTheLimitAndExitsWith99(t *testing.T) {
	const limit = 25
	server := brokertest.StartBeanstalkd(t)
	c := dialRaw(t, server.Addr())
	c.putAll(tube, 65536, 300, numbered("record", 60))
	w := startWorker(t, workerOptions{URL: server.URL(), Forks: 0, Threads: 5, Keys: fmt.Sprintf("gc_limit: %d", limit)})
	if code := w.wait(); code != 99 {
		t.Errorf("exit code %d, want 99", code)
	}
	started := map[int]bool{} // which ones is the server's choice
	for _, e := range w.entries("start") {
		if started[e.N] {
			t.Errorf("job %d was started twice", e.N)
		}
		started[e.N] = true
	}
	if len(started) != limit {
		t.Errorf("%d jobs were started, want %d", len(started), limit)
	}
	if left := c.count(tube, "current-jobs-ready"); left != 60-limit {
		t.Errorf("%d jobs are ready, want %d", left, 60-limit)
	}
}

// Fifty recycles leave no process, and in the parent no descriptor.
func TestRecyclingLeaksNothing(t *testing.T) {
	server := brokertest.StartBeanstalkd(t)
	w := startWorker(t, workerOptions{URL: server.URL(), Forks: 1, Threads: 2, Keys: "gc_limit: 2"})
	c := dialRaw(t, server.Addr())
	w.consuming(c, 2)
	run := func(from, n int) {
		bodies := make([]string, n)
		for i := range bodies {
			bodies[i] = activeJob("record", from+i, "")
		}
		c.putAll(tube, 65536, 300, bodies)
		testwait.Until(t, func() (bool, string) {
			return c.jobs(tube) == 0, fmt.Sprintf("%d jobs left", c.jobs(tube))
		})
		w.consuming(c, 2)
		testwait.Until(t, func() (bool, string) { n := len(w.children()); return n == 1, fmt.Sprintf("%d children", n) })
	}
	run(0, 10)
	before := openFiles(t, w.pid())
	run(10, 100)
	testwait.Until(t, func() (bool, string) {
		after := openFiles(t, w.pid())
		return after == before, fmt.Sprintf("the parent had %d open files and has %d after fifty recycles", before, after)
	})
	w.stop()
}
