//go:build unix

package integration_test

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/postburner/postburner/broker/brokertest"
	"github.com/postburner/postburner/internal/testwait"
)

func TestAKilledChildsJobRunsElsewhereAndTheChildIsReplaced(t *testing.T) {
	server := brokertest.StartBeanstalkd(t)
	w := startWorker(t, workerOptions{URL: server.URL(), Forks: 2, Threads: 2})
	c := dialRaw(t, server.Addr())
	w.consuming(c, 4)
	gate, open := w.gate("gate")
	c.put(tube, 1, 0, 600, activeJob("hold", 1, fmt.Sprintf(`,"gate":%q`, gate)))
	testwait.Until(t, func() (bool, string) { return len(w.entries("start")) == 1, "the job has not started" })
	victim := w.entries("start")[0].PID

	if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, func() (bool, string) { return len(w.entries("start")) == 2, "the job has not run again" })
	if again := w.entries("start")[1].PID; again == victim {
		t.Errorf("the job ran again in the killed process %d", victim)
	}
	w.consuming(c, 4)
	open()
	testwait.Until(t, func() (bool, string) { return c.jobs(tube) == 0, "the job is not done" })
	for _, want := range []string{"SIGKILL", "OOM", "hold"} {
		if !w.log.Contains(want) {
			t.Errorf("the log of the child's death does not mention %q", want)
		}
	}
	w.stop()
}

func TestNoChildOutlivesAKilledParent(t *testing.T) {
	server := brokertest.StartBeanstalkd(t)
	w := startWorker(t, workerOptions{URL: server.URL(), Forks: 3, Threads: 2, Keys: "timeout: 60"})
	w.consuming(dialRaw(t, server.Addr()), 6)
	children := w.children()
	if len(children) != 3 {
		t.Fatalf("children are %v, want three", children)
	}
	w.signal(syscall.SIGKILL)
	<-w.exited
	start := time.Now()
	gone(t, children)
	if took := time.Since(start); took > 2*time.Second {
		t.Logf("the children took %v to end, over the 2 s that they take on an idle machine", took)
	}
}

func TestEverySlotSurvivesRepeatedKills(t *testing.T) {
	server := brokertest.StartBeanstalkd(t)
	w := startWorker(t, workerOptions{URL: server.URL(), Forks: 3, Threads: 2})
	c := dialRaw(t, server.Addr())
	w.consuming(c, 6)
	for round := range 3 {
		children := w.children()
		for _, pid := range children {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		gone(t, children)
		w.consuming(c, 6)
		for _, pid := range w.children() {
			if slices.Contains(children, pid) {
				t.Errorf("round %d: child %d is there again", round, pid)
			}
		}
	}
	w.stop()
}
