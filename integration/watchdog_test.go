//go:build unix

package integration_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/postburner/postburner/broker/brokertest"
	"github.com/postburner/postburner/internal/testwait"
)

// watchdog waits until the scheduler tube holds exactly one job and returns its id and body.
func watchdog(t testing.TB, c *rawClient) (uint64, map[string]any) {
	t.Helper()
	var id uint64
	var text string
	testwait.Until(t, func() (bool, string) {
		n := c.jobs(watchTube)
		if n != 1 {
			return false, fmt.Sprintf("%d watchdogs, want one", n)
		}
		c.command("use %s", watchTube)
		reply := c.command("peek-delayed")
		var size int
		if _, err := fmt.Sscanf(reply, "FOUND %d %d", &id, &size); err != nil {
			return false, "the watchdog is not delayed: " + reply
		}
		text = c.body(reply)
		return true, ""
	})
	var body map[string]any
	if err := json.Unmarshal([]byte(text), &body); err != nil {
		t.Fatal(err)
	}
	return id, body
}

func TestOneWatchdogIsArmedAndArmedAgain(t *testing.T) {
	t.Parallel()
	brokertest.Each(t, func(t *testing.T, server brokertest.Server) {
		w := startWorker(t, workerOptions{URL: server.URL(), Forks: 2, Threads: 2, Keys: "timeout: 1", Top: "scheduler_interval: 120"})
		c := dialRaw(t, server.Addr())
		id, body := watchdog(t, c)
		if body["scheduler"] != true || body["interval"] != 120.0 {
			t.Errorf("watchdog is %v, want scheduler true and interval 120", body)
		}
		if stats := c.stats("stats-job %d", id); stats["pri"] != "100" {
			t.Errorf("priority of the watchdog is %s, want 100", stats["pri"])
		}
		if reply := c.command("delete %d", id); reply != "DELETED" {
			t.Fatalf("delete the watchdog: %s", reply)
		}
		if again, _ := watchdog(t, c); again == id {
			t.Errorf("the deleted watchdog %d is there again", id)
		}
		w.stop()
		if n := c.jobs(watchTube); n != 1 {
			t.Errorf("after the stop the tube holds %d watchdogs, want 1", n)
		}
	})
}

func TestTheWatchdogIsArmedAgainWhileUserTubesAreSaturated(t *testing.T) {
	t.Parallel()
	server := brokertest.StartBeanstalkd(t)
	w := startWorker(t, workerOptions{URL: server.URL(), Forks: 1, Threads: 2, Keys: "timeout: 1"})
	c := dialRaw(t, server.Addr())
	id, _ := watchdog(t, c)
	bodies := make([]string, 20_000)
	for i := range bodies {
		bodies[i] = activeJob("nap", i, `,"millis":50`)
	}
	c.putAll(tube, 0, 600, bodies)
	if reply := c.command("delete %d", id); reply != "DELETED" {
		t.Fatalf("delete the watchdog: %s", reply)
	}
	start := time.Now()
	watchdog(t, c)
	if took := time.Since(start); took > 3*time.Second {
		t.Logf("armed again after %v, over timeout + 2 s", took)
	}
	if ready := c.count(tube, "current-jobs-ready"); ready == 0 {
		t.Error("the user tube was not saturated any more")
	}
	w.stop()
}

func TestEightWorkersConvergeOnOneWatchdog(t *testing.T) {
	server := brokertest.StartBeanstalkd(t)
	c := dialRaw(t, server.Addr())
	var workers []*workerProcess
	for range 8 {
		workers = append(workers, startWorker(t, workerOptions{URL: server.URL(), Forks: 0, Threads: 1, Keys: "timeout: 1"}))
	}
	for i := range 8 { // duplicates, as a split of the network would leave them
		c.put(watchTube, 100, 3600, 60, fmt.Sprintf(`{"scheduler":true,"interval":300,"generation":%d}`, i))
	}
	testwait.Until(t, func() (bool, string) {
		n := c.count(watchTube, "current-watching")
		return n == 8, fmt.Sprintf("%d schedulers", n)
	})
	watchdog(t, c)
	for _, w := range workers {
		w.stop()
	}
	if n := c.jobs(watchTube); n != 1 {
		t.Errorf("%d watchdogs at the end, want 1", n)
	}
}
