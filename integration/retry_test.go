//go:build unix

package integration_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/postburner/postburner/broker/brokertest"
	"github.com/postburner/postburner/internal/testwait"
)

func TestAFailingJobIsReleasedWithGrowingDelaysAndThenBuried(t *testing.T) {
	t.Parallel()
	server := brokertest.StartBeanstalkd(t)
	w := startWorker(t, workerOptions{URL: server.URL(), Forks: 1, Threads: 2, Top: "retry: {max_retries: 2, base: 1s, factor: 2, jitter: 0}"})
	c := dialRaw(t, server.Addr())
	id := c.put(tube, 7, 0, 60, activeJob("fail", 1, `,"times":99`))
	for retry, delay := range []string{"1", "2"} {
		testwait.Until(t, func() (bool, string) {
			stats := c.stats("stats-job %d", id)
			return stats["releases"] == fmt.Sprint(retry+1) && stats["delay"] == delay && stats["pri"] == "7",
				fmt.Sprintf("want release %d with delay %s and priority 7, have %v", retry+1, delay, stats)
		})
	}
	testwait.Until(t, func() (bool, string) {
		stats := c.stats("stats-job %d", id)
		return stats["state"] == "buried", fmt.Sprintf("want it buried, have %v", stats)
	})
	starts := w.entries("start")
	if len(starts) != 3 {
		t.Fatalf("%d attempts, want 3", len(starts))
	}
	for i, e := range starts {
		if want := fmt.Sprint("attempt ", i+1); e.Note != want {
			t.Errorf("execution %d saw %q, want %q", i+1, e.Note, want)
		}
		if i > 0 {
			// beanstalkd promises whole seconds: a retry is never early by more than one of them.
			if wait := e.At.Sub(starts[i-1].At); wait < time.Duration(1<<(i-1))*time.Second-time.Second {
				t.Errorf("retry %d came after %v, too early", i, wait)
			}
		}
	}
	if puts := c.stats("stats")["cmd-put"]; puts != "2" { // this test's and the watchdog's
		t.Errorf("the server saw %s puts, want 2: a retry must be a release", puts)
	}
	w.stop()
}

func TestExhaustedJobsAreDiscardedIfSoConfigured(t *testing.T) {
	t.Parallel()
	server := brokertest.StartBeanstalkd(t)
	w := startWorker(t, workerOptions{URL: server.URL(), Forks: 1, Threads: 2, Top: "retry: {max_retries: 1, base: 1s, exhausted: discard}"})
	c := dialRaw(t, server.Addr())
	id := c.put(tube, 7, 0, 60, activeJob("fail", 1, `,"times":99`))
	testwait.Until(t, func() (bool, string) {
		stats := c.stats("stats-job %d", id)
		return stats == nil, fmt.Sprintf("want it deleted, have %v", stats)
	})
	if got := len(w.entries("start")); got != 2 {
		t.Errorf("%d attempts before the discard, want 2", got)
	}
	w.stop()
}

func TestTheAttemptCountSurvivesARestartOfBeanstalkd(t *testing.T) {
	t.Parallel()
	server := brokertest.StartBeanstalkd(t, "-b", t.TempDir())
	w := startWorker(t, workerOptions{URL: server.URL(), Forks: 1, Threads: 1, Top: "retry: {max_retries: 5, base: 3s, factor: 1, jitter: 0}"})
	c := dialRaw(t, server.Addr())
	id := c.put(tube, 7, 0, 60, activeJob("fail", 1, `,"times":1`))
	testwait.Until(t, func() (bool, string) {
		stats := c.stats("stats-job %d", id)
		return stats["state"] == "delayed", fmt.Sprintf("want it delayed after the first failure, have %v", stats)
	})
	server.Kill()
	server.Restart()
	c = dialRaw(t, server.Addr())
	testwait.Until(t, func() (bool, string) { return c.jobs(tube) == 0, "the second attempt has not succeeded" })
	starts := w.entries("start")
	if len(starts) != 2 || starts[1].Note != "attempt 2" {
		t.Errorf("executions %v, want a second one as attempt 2", starts)
	}
	w.stop()
}

func TestNothingThatAJobDoesStopsAConsumer(t *testing.T) {
	t.Parallel()
	brokertest.Each(t, func(t *testing.T, server brokertest.Server) {
		w := startWorker(t, workerOptions{URL: server.URL(), Forks: 1, Threads: 1, Top: "retry: {max_retries: 0}"})
		c := dialRaw(t, server.Addr())
		buried := map[string]uint64{
			"a panic":                  c.put(tube, 1, 0, 60, activeJob("panic", 1, "")),
			"a Goexit":                 c.put(tube, 1, 0, 60, activeJob("goexit", 2, "")),
			"an unknown kind":          c.put(tube, 1, 0, 60, activeJob("nobody", 3, "")),
			"a body that is no JSON":   c.put(tube, 1, 0, 60, "\x00\xff not JSON"),
			"a body that is no object": c.put(tube, 1, 0, 60, "[1,2,3]"),
			"an empty body":            c.put(tube, 1, 0, 60, ""),
			"a body without a kind":    c.put(tube, 1, 0, 60, `{"arguments":[]}`),
			"a tracked job":            c.put(tube, 1, 0, 60, `{"job_class":"fail","job_id":"x","tracked":true,"max_retries":9,"arguments":[{"n":5,"times":9}]}`),
			"a legacy job":             c.put(tube, 1, 0, 60, `{"class":"fail","args":[{"n":6,"times":9}]}`),
			"arguments of other types": c.put(tube, 1, 0, 60, `{"job_class":"record","job_id":"y","arguments":["text"]}`),
		}
		last := c.put(tube, 2, 0, 60, activeJob("record", 100, ""))
		testwait.Until(t, func() (bool, string) {
			stats := c.stats("stats-job %d", last)
			return stats == nil, fmt.Sprintf("the good job behind the bad ones is %s", stats["state"])
		})
		for what, id := range buried {
			testwait.Until(t, func() (bool, string) {
				stats := c.stats("stats-job %d", id)
				return stats["state"] == "buried" && stats["releases"] == "0", fmt.Sprintf("%s: want it buried without a release, have %v", what, stats)
			})
		}
		if n := len(w.children()); n != 1 {
			t.Errorf("%d children, want 1", n)
		}
		w.stop()
	})
}

func TestALegacyJobWithScalarArgumentsRuns(t *testing.T) {
	t.Parallel()
	server := brokertest.StartBeanstalkd(t)
	w := startWorker(t, workerOptions{URL: server.URL(), Forks: 0, Threads: 1})
	c := dialRaw(t, server.Addr())
	c.put(tube, 1, 0, 60, `{"class":"record","args":[123]}`)
	testwait.Until(t, func() (bool, string) { return c.jobs(tube) == 0, "the legacy job is not done" })
	if starts := w.entries("start"); len(starts) != 1 || starts[0].N != 123 {
		t.Errorf("executions %v, want one with n = 123", starts)
	}
	w.signal(syscall.SIGINT)
	if code := w.wait(); code != 0 {
		t.Errorf("after INT the worker exited with %d, want 0", code)
	}
}
