//go:build unix

package integration_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/postburner/postburner/broker/brokertest"
	"github.com/postburner/postburner/internal/testwait"
)

// buildMark stands at the end of a copy of the test binary, before the name of the build.
const buildMark = "\npostburner test build "

// copyBinary makes a copy of the test binary that reports the name of a build.
func copyBinary(t *testing.T, path, build string) {
	t.Helper()
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	fresh := path + ".new"
	if err := os.WriteFile(fresh, append(program, buildMark+build...), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(fresh, path); err != nil { // as a deployment does: the old file lives on in those that run it
		t.Fatal(err)
	}
}

// buildOf returns the name of the build that this process was started from, "" if it is no such copy.
func buildOf() string {
	path, err := os.Executable()
	if err != nil {
		return err.Error()
	}
	program, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	end := program[max(0, len(program)-100):]
	_, build, _ := bytes.Cut(end, []byte(buildMark))
	return string(build)
}

func TestARollingRestartPutsTheNewBuildIntoServiceUnderLoad(t *testing.T) {
	const jobs, forks, threads = 4000, 4, 10
	server := brokertest.StartBeanstalkd(t)
	c := dialRaw(t, server.Addr())
	binary := filepath.Join(t.TempDir(), "worker")
	copyBinary(t, binary, "one")
	w := startWorker(t, workerOptions{URL: server.URL(), Forks: forks, Threads: threads, Binary: binary})
	w.consuming(c, forks*threads)
	old := w.children()
	bodies := make([]string, jobs)
	for i := range bodies {
		bodies[i] = activeJob("nap", i, `,"millis":40`)
	}
	c.putAll(tube, 65536, 300, bodies)
	copyBinary(t, binary, "two")
	w.signal(syscall.SIGUSR1)
	restarted := func() bool { return w.log.Contains("rolling restart is done") }
	dip := watchCapacity(t, c, forks*threads, restarted)
	if dip > time.Second {
		t.Errorf("capacity was below %d consumers for %v at a stretch", forks*threads, dip)
	}
	for _, pid := range w.children() {
		if slices.Contains(old, pid) {
			t.Errorf("child %d is still there", pid)
		}
	}
	testwait.Until(t, func() (bool, string) { return c.jobs(tube) == 0, fmt.Sprintf("%d jobs left", c.jobs(tube)) })
	onceEach(t, w.entries("end"), jobs)
	builds := map[string]int{}
	for _, e := range w.entries("start") {
		builds[e.Note]++
		if e.Note == "two" == slices.Contains(old, e.PID) {
			t.Errorf("job %d ran in process %d of build %q", e.N, e.PID, e.Note)
		}
	}
	if builds["one"] == 0 || builds["two"] == 0 || len(builds) != 2 {
		t.Errorf("jobs by build: %v, want some of each", builds)
	}
	w.stop()
}

func TestARestartWithABrokenBuildLeavesTheOldChildrenInPlace(t *testing.T) {
	t.Parallel()
	server := brokertest.StartBeanstalkd(t)
	c := dialRaw(t, server.Addr())
	binary := filepath.Join(t.TempDir(), "worker")
	copyBinary(t, binary, "one")
	w := startWorker(t, workerOptions{URL: server.URL(), Forks: 2, Threads: 2, Binary: binary})
	w.consuming(c, 4)
	old := w.children()
	if err := os.Remove(binary); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(binary, []byte("#!/bin/sh\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.signal(syscall.SIGUSR1)
	testwait.Until(t, func() (bool, string) {
		return w.log.Contains("rolling restart failed"), "the restart is not reported as failed"
	})
	if !w.log.Contains("the replacement of a child failed") || !w.log.Contains("slot=0") {
		t.Error("the log does not say which slot")
	}
	sameProcesses(t, old, w.children())
	c.put(tube, 1, 0, 60, activeJob("record", 1, ""))
	testwait.Until(t, func() (bool, string) { return c.jobs(tube) == 0, "the job is not done" })
	copyBinary(t, binary, "two")
	w.signal(syscall.SIGUSR1)
	testwait.Until(t, func() (bool, string) {
		return w.log.Contains("rolling restart is done"), "the next restart is not done"
	})
	w.stop()
}

func TestChildrenAreRecycledThoughTheBinaryIsGone(t *testing.T) {
	t.Parallel()
	const jobs = 100
	server := brokertest.StartBeanstalkd(t)
	c := dialRaw(t, server.Addr())
	binary := filepath.Join(t.TempDir(), "worker")
	copyBinary(t, binary, "one")
	w := startWorker(t, workerOptions{URL: server.URL(), Forks: 2, Threads: 2, Binary: binary, Keys: "gc_limit: 10"})
	w.consuming(c, 4)
	if err := os.Remove(binary); err != nil {
		t.Fatal(err)
	}
	c.putAll(tube, 65536, 300, numbered("record", jobs))
	testwait.Until(t, func() (bool, string) { return c.jobs(tube) == 0, fmt.Sprintf("%d jobs left", c.jobs(tube)) })
	onceEach(t, w.entries("start"), jobs)
	if !w.log.Contains("the program is gone from where it was") {
		t.Error("the log does not say that the program is gone")
	}
	w.stop()
}

func TestAChildThatNoLongerGivesSignsOfLifeIsKilledAndReplaced(t *testing.T) {
	t.Parallel()
	server := brokertest.StartBeanstalkd(t)
	c := dialRaw(t, server.Addr())
	w := startWorker(t, workerOptions{URL: server.URL(), Forks: 2, Threads: 2, Keys: "liveness_timeout: 5"})
	w.consuming(c, 4)
	gate, open := w.gate("gate")
	c.put(tube, 1, 0, 600, activeJob("hold", 1, fmt.Sprintf(`,"gate":%q`, gate)))
	testwait.Until(t, func() (bool, string) { return len(w.entries("start")) == 1, "the job has not started" })
	victim := w.entries("start")[0].PID
	if err := syscall.Kill(victim, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, func() (bool, string) { return len(w.entries("start")) == 2, "the job has not run again" })
	open()
	testwait.Until(t, func() (bool, string) { return c.jobs(tube) == 0, "the job is not done" })
	w.consuming(c, 4)
	gone(t, []int{victim})
	w.stop()
}

func TestAStuckHandlersJobIsReleasedAndItsChildReplacedWhileTheOtherJobsFinish(t *testing.T) {
	t.Parallel()
	server := brokertest.StartBeanstalkd(t)
	c := dialRaw(t, server.Addr())
	w := startWorker(t, workerOptions{URL: server.URL(), Forks: 1, Threads: 2, Keys: "max_runtime: 1", Top: "retry: {base: 1h, max: 1h}"})
	w.consuming(c, 2)
	gate, _ := w.gate("never")
	id := c.put(tube, 1, 0, 600, activeJob("stubborn", 1, fmt.Sprintf(`,"gate":%q`, gate)))
	testwait.Until(t, func() (bool, string) { return len(w.entries("start")) == 1, "the job has not started" })
	first := w.entries("start")[0].PID
	testwait.Until(t, func() (bool, string) {
		stats := c.stats("stats-job %d", id)
		return stats["state"] == "delayed" && stats["releases"] == "1", fmt.Sprintf("the job is %v", stats)
	})
	for _, text := range []string{"handler is stuck", "stubborn", "waitForFile"} {
		if !w.log.Contains(text) {
			t.Errorf("the log does not have %q", text)
		}
	}
	testwait.Until(t, func() (bool, string) {
		now := w.children()
		return len(now) >= 1 && now[len(now)-1] != first, fmt.Sprintf("children %v", now)
	})
	c.put(tube, 1, 0, 60, activeJob("record", 2, ""))
	testwait.Until(t, func() (bool, string) { return len(w.entries("start")) == 2, "no other job runs" })
	w.signal(syscall.SIGTERM)
	w.signal(syscall.SIGTERM) // the stuck one does not end by itself
	w.wait()
}
