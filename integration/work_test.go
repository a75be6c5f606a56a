//go:build unix

package integration_test

import (
	"fmt"
	"testing"

	"github.com/postburner/postburner/broker/brokertest"
	"github.com/postburner/postburner/internal/testwait"
)

// Ten thousand jobs of an independent client on 4 × 10 consumers.
func TestEveryJobIsExecutedExactlyOnce(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, server brokertest.Server) {
		const jobs = 10_000
		w := startWorker(t, workerOptions{URL: server.URL(), Forks: 4, Threads: 10})
		c := dialRaw(t, server.Addr())
		w.consuming(c, 40)
		before := w.children()
		c.putAll(tube, 65536, 300, numbered("record", jobs))
		testwait.Until(t, func() (bool, string) {
			left := c.jobs(tube)
			return left == 0, fmt.Sprintf("%d jobs left in the tube", left)
		})
		onceEach(t, w.entries("start"), jobs)
		sameProcesses(t, before, w.children())
		w.stop()
		if n := c.count(tube, "current-watching"); n != 0 {
			t.Errorf("%d consumers are still connected after the stop", n)
		}
	})
}

// onceEach wants every number from 0 to n-1 exactly once.
func onceEach(t testing.TB, entries []entry, n int) {
	t.Helper()
	times := make(map[int]int, n)
	for _, e := range entries {
		times[e.N]++
	}
	for i := range n {
		if times[i] != 1 {
			t.Fatalf("job %d was executed %d times, want once (%d executions of %d jobs)", i, times[i], len(entries), n)
		}
	}
	if len(times) != n {
		t.Fatalf("%d different jobs were executed, want %d", len(times), n)
	}
}

func sameProcesses(t testing.TB, before, after []int) {
	t.Helper()
	if fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("child processes were %v and are now %v: a child died", before, after)
	}
}
