package integration_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/postburner/postburner/broker/brokertest"
	"github.com/postburner/postburner/internal/testwait"
	"github.com/postburner/postburner/job"
)

// leakBytes is what each job leaks. It is mapped past Go's heap, so that the race detector does not multiply it.
const leakBytes = 20 << 20

func init() {
	leakHandler = func(r *job.Registry, book *journal) {
		r.Handle("leak", job.HandlerFunc(func(ctx context.Context, j *job.Job) error {
			var a Nap
			if err := j.Bind(&a); err != nil {
				return err
			}
			if _, err := syscall.Mmap(-1, 0, leakBytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_POPULATE); err != nil {
				return err
			}
			<-time.After(time.Duration(a.Millis) * time.Millisecond)
			book.write(ctx, "end", a.N, "")
			return nil
		}))
	}
}

// resident returns the resident bytes of a process, 0 if it is gone.
func resident(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0 // it is just ending
	}
	pages, err := strconv.Atoi(fields[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// A handler that leaks works on, in a bounded total, because its child is replaced each
// time it has outgrown memory_limit, which is looked at every 10 s.
func TestALeakIsBoundedByReplacingTheChild(t *testing.T) {
	t.Parallel()
	const jobs, millis, limit = 60, 400, 100 << 20
	server := brokertest.StartBeanstalkd(t)
	c := dialRaw(t, server.Addr())
	w := startWorker(t, workerOptions{URL: server.URL(), Forks: 1, Threads: 1, Keys: "memory_limit: 100MB"})
	w.consuming(c, 1)
	bodies := make([]string, jobs)
	for i := range bodies {
		bodies[i] = activeJob("leak", i, fmt.Sprintf(`,"millis":%d`, millis))
	}
	c.putAll(tube, 65536, 300, bodies)
	most := 0
	testwait.Until(t, func() (bool, string) {
		for _, pid := range w.children() {
			most = max(most, resident(t, pid))
		}
		left := c.jobs(tube)
		return left == 0, fmt.Sprintf("%d jobs are left", left)
	})
	onceEach(t, w.entries("end"), jobs)
	var pids []int
	for _, e := range w.entries("end") {
		if !slices.Contains(pids, e.PID) {
			pids = append(pids, e.PID)
		}
	}
	if len(pids) < 2 {
		t.Errorf("%d children ran the jobs, want the first replaced", len(pids))
	}
	if bound := jobs * leakBytes * 3 / 4; most > bound || most < limit {
		t.Errorf("the largest child had %d bytes, want from %d to %d", most, limit, bound)
	}
	if !w.log.Contains("over the memory limit") {
		t.Error("the log does not say why")
	}
	w.stop()
}
