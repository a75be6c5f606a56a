package swarm

import (
	"errors"
	"slices"
	"testing"
	"time"
)

func TestARecyclingChildIsReplacedWhileItFinishes(t *testing.T) {
	s := newScript(t, 1)
	s.ready(1)
	s.spawns(1)
	s.is(heard{1, message{Ready: true, Recycling: true, Heartbeat: Heartbeat{Started: 25}}})
	s.spawns(2)
	s.has(0, 1, 2)
	s.ready(2)
	if n := len(taken[term](s)); n != 0 {
		t.Errorf("the old child was sent TERM, though it ends by itself")
	}
	s.is(exited{1, Exit{Code: ExitRecycled}})
	s.spawns()
	s.has(0, 2)
}

func TestAnUnannouncedExitWith99IsReplacedAtOnce(t *testing.T) {
	s := newScript(t, 1)
	s.ready(1)
	s.is(heard{1, message{Ready: true, Heartbeat: Heartbeat{Started: 1}}})
	s.spawns(1)
	s.is(exited{1, Exit{Code: ExitRecycled}})
	s.spawns(2)
}

func TestRecyclingWithoutHavingDoneAJobIsAFailure(t *testing.T) {
	for _, announced := range []bool{true, false} {
		t.Run(map[bool]string{true: "announced", false: "not announced"}[announced], func(t *testing.T) {
			s := newScript(t, 1)
			s.ready(1)
			s.spawns(1)
			s.is(heard{1, message{Ready: true, Recycling: announced}})
			s.is(exited{1, Exit{Code: ExitRecycled}})
			s.pass(999 * time.Millisecond)
			s.spawns()
			s.pass(time.Millisecond)
			s.spawns(2)
		})
	}
}

func TestChildrenThatFinishLongJobsDoNotPileUp(t *testing.T) {
	s := newScript(t, 1)
	recycle := func(id int) {
		s.ready(id)
		s.is(heard{id, message{Ready: true, Recycling: true, Heartbeat: Heartbeat{Started: 1}}})
	}
	recycle(1)
	recycle(2)
	s.has(0, 1, 2)
	s.tells(EventRecycling, "still finishes")
	s.is(exited{1, Exit{Code: ExitRecycled}})
	s.has(0, 2, 3)
}

func TestARollingRestartGoesSlotBySlotAndWaitsForEachDrain(t *testing.T) {
	s := newScript(t, 2)
	s.ready(1)
	s.ready(2)
	s.spawns(1, 2)
	s.is(askedToRestart{})
	s.spawns(3)
	s.has(0, 1, 3)
	s.is(spawned{3})
	s.is(heard{3, message{}})
	if got := taken[term](s); len(got) != 0 {
		t.Fatal("the old child was asked to end before the new one consumes")
	}
	s.is(heard{3, message{Ready: true}})
	if got := taken[term](s); !slices.Equal(got, []term{{1}}) {
		t.Fatalf("TERM to %v, want child 1", got)
	}
	s.pass(9*time.Second, 1, 2, 3)
	s.spawns() // child 1 drains: slot 1 has to wait
	s.is(exited{1, Exit{}})
	s.spawns(4)
	s.has(1, 2, 4)
	s.ready(4)
	s.is(exited{2, Exit{}})
	s.tells(EventRestartDone, "")
	s.has(0, 3)
	s.has(1, 4)
}

func TestAFailedReplacementEndsTheRestartAndTheOldChildStays(t *testing.T) {
	for _, test := range []struct {
		name   string
		fail   func(s *script)
		reason string
	}{
		{"it cannot be started", func(s *script) { s.is(spawnFailed{3, errors.New("exec format error")}) }, "exec format error"},
		{"it dies", func(s *script) { s.is(spawned{3}); s.is(exited{3, crash}) }, "SIGSEGV"},
		{"it does not consume within 30 s", func(s *script) {
			s.is(spawned{3})
			s.is(heard{3, message{}})
			s.pass(30*time.Second, 1, 2, 3)
		}, "did not consume"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newScript(t, 2)
			s.ready(1)
			s.ready(2)
			s.is(askedToRestart{})
			s.actions = nil
			test.fail(s)
			s.tells(EventRestartFailed, test.reason)
			s.is(exited{3, Exit{Code: -1, Signal: "SIGKILL"}})
			s.pass(time.Minute, 1, 2)
			s.has(0, 1)
			s.has(1, 2)
		})
	}
}

func TestAStuckChildIsReplacedEvenIfTheFirstReplacementFails(t *testing.T) {
	s := newScript(t, 2)
	s.ready(1)
	s.ready(2)
	s.spawns(1, 2)
	s.is(heard{1, message{Ready: true, Stuck: true}})
	s.spawns(3)
	s.is(spawnFailed{3, errors.New("no memory")})
	s.pass(time.Second, 1, 2)
	s.spawns(4)
	s.ready(4)
	if got := taken[term](s); !slices.Equal(got, []term{{1}}) {
		t.Fatalf("TERM to %v, want child 1", got)
	}
	// It ignores TERM, as a stuck child may.
	s.pass(15*time.Second, 1, 2, 4)
	if got := taken[kill](s); !slices.Equal(got, []kill{{1}}) {
		t.Fatalf("killed 5 s after the shutdown timeout: %v, want child 1", got)
	}
}

func TestChildrenOverTheirMemoryAreReplacedOneAtATime(t *testing.T) {
	s := newScript(t, 2)
	s.ready(1)
	s.ready(2)
	s.pass(time.Minute, 1, 2)
	s.spawns(1, 2)
	s.is(measured{1, 1000})
	s.spawns() // at the limit is not over it
	s.is(measured{1, 1001})
	s.is(measured{2, 1001})
	s.spawns(3)
	s.ready(3)
	s.spawns()
	s.is(exited{1, Exit{}})
	s.spawns(4)
}

func TestChildrenThatOutgrowTheirMemoryAtOnceAreReplacedWithAWait(t *testing.T) {
	s := newScript(t, 1)
	s.ready(1)
	s.spawns(1)
	s.is(measured{1, 1001})
	s.pass(999*time.Millisecond, 1)
	s.spawns()
	s.pass(time.Millisecond)
	s.spawns(2)
	s.ready(2)
	s.is(exited{1, Exit{}})
	s.is(measured{2, 1001})
	s.pass(1999*time.Millisecond, 2)
	s.spawns()
	s.pass(time.Millisecond)
	s.spawns(3)
}

func TestALongDrainInOneSlotHoldsUpNoReplacementInAnother(t *testing.T) {
	s := newScript(t, 2)
	s.ready(1)
	s.ready(2)
	s.is(heard{1, message{Ready: true, Recycling: true, Heartbeat: Heartbeat{Started: 1}}})
	s.ready(3)
	s.spawns(1, 2, 3)
	s.is(heard{3, message{Ready: true, Stuck: true}}) // child 1 still finishes its jobs there
	s.is(heard{2, message{Ready: true, Stuck: true}})
	s.spawns(4)
	s.has(1, 2, 4)
}

func TestARestartedSlotDoesNotWaitForeverForAnOldDrain(t *testing.T) {
	s := newScript(t, 1)
	s.ready(1)
	s.is(heard{1, message{Ready: true, Recycling: true, Heartbeat: Heartbeat{Started: 1}}})
	s.ready(2)
	s.actions = nil
	s.is(askedToRestart{})
	if got := taken[term](s); !slices.Equal(got, []term{{1}}) {
		t.Fatalf("TERM to %v, want child 1, which finishes its jobs", got)
	}
	s.is(exited{1, Exit{Code: ExitRecycled}})
	s.has(0, 2, 3)
}
