//go:build unix

package swarm

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestAChildIsReplacedBeforeItHasFinishedRecycling(t *testing.T) {
	t.Parallel()
	r := run(t, 1, first(part{Role: recycling, Jobs: 25}, part{Role: working}), nil)
	old := r.await(EventRecycling, 1)[0].PID
	r.await(EventReady, 2)
	if !exists(old) {
		t.Error("the old child is gone before its jobs are done")
	}
	r.openGate()
	e := r.await(EventExited, 1)[0]
	if e.PID != old || e.Exit.Code != ExitRecycled || e.Wait != 0 || e.Exit.Heartbeat.Started != 25 {
		t.Errorf("exit event %+v, want child %d with 99 after 25 jobs, and no wait", e, old)
	}
	r.settled()
	if n := len(r.seen(EventSpawned)); n != 2 {
		t.Errorf("%d children were started, want 2", n)
	}
	r.end()
	if text := r.log.String(); strings.Contains(text, "level=ERROR") {
		t.Errorf("recycling logged an error:\n%s", text)
	}
}

func TestAStuckChildIsReplacedOnceItsSuccessorConsumes(t *testing.T) {
	t.Parallel()
	r := run(t, 1, first(part{Role: stuckOne}, part{Role: working}), nil)
	old := r.await(EventReplace, 1)[0]
	if !strings.Contains(old.Reason, "stuck") {
		t.Errorf("reason %q, want that a handler is stuck", old.Reason)
	}
	if e := r.await(EventExited, 1)[0]; e.PID != old.PID {
		t.Errorf("child %d ended, want %d", e.PID, old.PID)
	}
	order := r.all()
	at := func(typ EventType, pid int) int {
		return slices.IndexFunc(order, func(e Event) bool { return e.Type == typ && e.PID == pid })
	}
	if ready := at(EventReady, r.settled()[0]); ready < 0 || ready > at(EventExited, old.PID) {
		t.Errorf("the old child ended before the new one consumed: %+v", order)
	}
	r.end()
}

func TestAChildOverItsMemoryLimitIsReplaced(t *testing.T) {
	t.Parallel()
	if _, err := residentMemory(os.Getpid()); err != nil {
		t.Skip(err)
	}
	r := run(t, 1, first(part{Role: growing, Bytes: 192 << 20}, part{Role: working}), func(o *Options) {
		o.MemoryLimit, o.MemoryCheck = 160<<20, 20*time.Millisecond
	})
	old := r.await(EventReplace, 1)[0]
	if !strings.Contains(old.Reason, "memory limit") {
		t.Errorf("reason %q, want the memory limit", old.Reason)
	}
	eventually(t, func() (bool, string) { return !exists(old.PID), "the old child is not gone" })
	r.settled()
	r.end()
}

func TestARollingRestartReplacesEveryChild(t *testing.T) {
	t.Parallel()
	r := run(t, 3, always(part{Role: working}), nil)
	before := r.settled()
	r.swarm.Restart()
	r.await(EventRestartDone, 1)
	for slot, pid := range r.settled() {
		if slices.Contains(before, pid) {
			t.Errorf("slot %d still has child %d", slot, pid)
		}
	}
	// One slot at a time: ready, exited, ready, exited …
	var order []EventType
	for _, e := range r.all()[slices.IndexFunc(r.all(), func(e Event) bool { return e.Type == EventRestart }):] {
		if e.Type == EventReady || e.Type == EventExited {
			order = append(order, e.Type)
		}
	}
	if want := []EventType{EventReady, EventExited, EventReady, EventExited, EventReady, EventExited}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
	r.end()
}

func TestARestartWhoseReplacementNeverConsumesLeavesTheOldChildren(t *testing.T) {
	t.Parallel()
	r := run(t, 2, first(part{Role: working}, part{Role: unready}), func(o *Options) { o.ReadyTimeout = 2 * time.Second })
	before := r.settled()
	r.swarm.Restart()
	if e := r.await(EventRestartFailed, 1)[0]; !strings.Contains(e.Reason, "did not consume") {
		t.Errorf("reason %q, want that it did not consume", e.Reason)
	}
	if after := r.settled(); !slices.Equal(before, after) {
		t.Errorf("children were %v and are %v, want the same", before, after)
	}
	r.end()
}

func TestFiftyRecyclesLeakNothing(t *testing.T) {
	// Not parallel: it counts the files of the whole process.
	recycle := func(n int) {
		r := run(t, 1, always(part{Role: recycling, Jobs: 1}), nil)
		r.openGate()
		r.await(EventExited, n)
		r.end()
	}
	recycle(1) // what the runtime opens once
	before := openFiles(t)
	recycle(50)
	if after := openFiles(t); after != before {
		t.Errorf("%d files were open before fifty recycles and %d are after", before, after)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}
