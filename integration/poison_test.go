//go:build unix

package integration_test

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/postburner/postburner/broker/brokertest"
	"github.com/postburner/postburner/internal/testwait"
)

func TestJobsThatKillTheirProcessAreBuriedAndAllOthersFinish(t *testing.T) {
	t.Parallel()
	const others = 1000
	killers := []string{"kill", "exit", "fatal"}
	server := brokertest.StartBeanstalkd(t)
	c := dialRaw(t, server.Addr())
	bodies := make([]string, others)
	for i := range bodies {
		bodies[i] = activeJob("nap", i, `,"millis":5`)
	}
	c.putAll(tube, 65536, 300, bodies[:others/2])
	for i, how := range killers {
		c.put(tube, 65536, 0, 300, activeJob("kill", others+i, fmt.Sprintf(`,"how":%q`, how)))
	}
	c.putAll(tube, 65536, 300, bodies[others/2:])
	w := startWorker(t, workerOptions{URL: server.URL(), Forks: 2, Threads: 5})
	testwait.Until(t, func() (bool, string) {
		buried, all := c.count(tube, "current-jobs-buried"), c.jobs(tube)
		return buried == len(killers) && all == len(killers), fmt.Sprintf("%d jobs are left, %d of them buried, want %d", all, buried, len(killers))
	})
	ended := map[int]bool{}
	for _, e := range w.entries("end") {
		ended[e.N] = true
	}
	if len(ended) != others {
		t.Errorf("%d other jobs have ended, want %d", len(ended), others)
	}
	starts := map[int]int{}
	for _, e := range w.entries("start") {
		starts[e.N]++
	}
	for i, how := range killers {
		if n := starts[others+i]; n < 3 || n > 5 { // a child may have it before it is told of the death of another
			t.Errorf("the job that dies by %s was started %d times, want 3", how, n)
		}
	}
	if n := w.log.Count("poison: "); n != len(killers) {
		t.Errorf("the log tells of %d poison jobs, want %d", n, len(killers))
	}
	w.stop()
}

// killTree runs a worker until the journal has a start, and then kills it and its children.
func killTree(t *testing.T, o workerOptions, ready func(w *workerProcess) bool) {
	t.Helper()
	w := startWorker(t, o)
	testwait.Until(t, func() (bool, string) { return ready(w), "the worker is not where it is to be killed" })
	children := w.children()
	w.signal(syscall.SIGKILL)
	for _, pid := range children {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have followed its parent already
	}
	<-w.exited
	gone(t, children)
}

func TestAJobWithWhichTheWholeTreeDiesAgainAndAgainIsBuriedAtABoot(t *testing.T) {
	t.Parallel()
	server := brokertest.StartBeanstalkd(t)
	c := dialRaw(t, server.Addr())
	gate := t.TempDir() + "/gate"
	id := c.put(tube, 65536, 0, 600, activeJob("hold", 1, fmt.Sprintf(`,"gate":%q`, gate)))
	state := func() string { return c.stats("stats-job %d", id)["state"] }
	o := workerOptions{URL: server.URL(), Forks: 2, Threads: 2, Keys: "poison_reserves: 10\npoison_deaths: 3"}
	runs := 0
	for ; state() != "buried" && runs < 20; runs++ {
		killTree(t, o, func(w *workerProcess) bool { return len(w.entries("start")) == 1 || state() == "buried" })
		testwait.Until(t, func() (bool, string) { s := state(); return s != "reserved", "the job is " + s })
	}
	// Each death is one to four reserves: the job is handed from one dying consumer to the next.
	if runs < 10/4+3 || runs > 10+3+1 {
		t.Errorf("the job was buried after %d deaths of the whole tree", runs)
	}
	if stats := c.stats("stats-job %d", id); stats["state"] != "buried" {
		t.Errorf("the job is %v", stats)
	}
}

func TestOneDeathOfAnIdleFleetMakesNoJobPoison(t *testing.T) {
	t.Parallel()
	server := brokertest.StartBeanstalkd(t)
	c := dialRaw(t, server.Addr())
	w := workerOptions{URL: server.URL(), Forks: 2, Threads: 20}
	dir := t.TempDir()
	const jobs = 3
	for i := range jobs {
		c.put(tube, 65536, 0, 600, activeJob("hold", i, fmt.Sprintf(`,"gate":%q`, dir+"/gate")))
	}
	killTree(t, w, func(w *workerProcess) bool {
		return len(w.entries("start")) == jobs && c.count(tube, "current-watching") == 40
	})
	testwait.Until(t, func() (bool, string) {
		n := c.count(tube, "current-jobs-ready")
		return n == jobs, fmt.Sprintf("%d jobs are ready", n)
	})
	if err := os.WriteFile(dir+"/gate", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	after := startWorker(t, w)
	testwait.Until(t, func() (bool, string) {
		return c.jobs(tube) == 0, fmt.Sprintf("%d jobs are left, %d of them buried", c.jobs(tube), c.count(tube, "current-jobs-buried"))
	})
	after.stop()
}

func TestALongJobThatDeploysInterruptIsNoPoison(t *testing.T) {
	t.Parallel()
	const restarts = 20
	server := brokertest.StartBeanstalkd(t)
	w := startWorker(t, workerOptions{URL: server.URL(), Forks: 1, Threads: 1, Keys: "shutdown_timeout: 1"})
	c := dialRaw(t, server.Addr())
	gate, open := w.gate("gate")
	id := c.put(tube, 65536, 0, 600, activeJob("hold", 1, fmt.Sprintf(`,"gate":%q`, gate)))
	for round := 1; round <= restarts; round++ {
		testwait.Until(t, func() (bool, string) {
			n := len(w.entries("start"))
			return n == round, fmt.Sprintf("the job has started %d times, want %d", n, round)
		})
		w.signal(syscall.SIGUSR1)
		testwait.Until(t, func() (bool, string) {
			n := w.log.Count("rolling restart is done")
			return n == round, fmt.Sprintf("%d rolling restarts are done, want %d", n, round)
		})
	}
	w.stop()
	stats := c.stats("stats-job %d", id)
	if stats["state"] != "ready" || stats["releases"] != "0" || stats["timeouts"] != "0" {
		t.Errorf("after %d restarts the job is %v, want it ready and no attempt counted", restarts, stats)
	}
	open()
	w = startWorker(t, workerOptions{URL: server.URL(), Forks: 1, Threads: 1})
	testwait.Until(t, func() (bool, string) { return c.jobs(tube) == 0, "the job is not done" })
	w.stop()
}
