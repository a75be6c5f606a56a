package swarm

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postburner/postburner/retry"
)

// script drives the state machine by hand and notes what it answers.
type script struct {
	t       *testing.T
	state   state
	now     time.Time
	actions []any // since the last look
}

func newScript(t *testing.T, forks int) *script {
	t.Parallel()
	opts := Options{
		Forks: forks, Threads: 1, BootTimeout: 30 * time.Second, ReadyTimeout: 30 * time.Second, LivenessTimeout: time.Minute,
		ShutdownTimeout: 10 * time.Second, HealthyAfter: time.Minute, MemoryLimit: 1000,
		Backoff: retry.Curve{Base: time.Second, Factor: 2, Max: 30 * time.Second},
	}
	s := &script{t: t, state: newState(opts), now: time.Unix(1e9, 0)}
	s.is(tick{})
	return s
}

func (s *script) is(event any) {
	next, actions := s.state.next(s.now, event)
	s.state = next
	s.actions = append(s.actions, actions...)
}

// pass lets time go by, a second at a time, with a heartbeat of each child named.
func (s *script) pass(d time.Duration, beating ...int) {
	for end := s.now.Add(d); s.now.Before(end); {
		s.now = s.now.Add(min(time.Second, end.Sub(s.now)))
		for _, id := range beating {
			s.heartbeat(id)
		}
		s.is(tick{})
	}
}

// heartbeat repeats what a child is known to have said.
func (s *script) heartbeat(id int) {
	if _, c := s.state.find(id); c != nil {
		s.is(heard{id, message{Ready: c.phase == consuming, Recycling: c.recycling, Heartbeat: Heartbeat{Started: c.started}}})
	}
}

func (s *script) ready(id int) {
	s.is(spawned{id})
	s.is(heard{id, message{Ready: true}})
}

// taken returns and forgets the actions so far that are of a type.
func taken[T any](s *script) (found []T) {
	for _, a := range s.actions {
		if a, ok := a.(T); ok {
			found = append(found, a)
		}
	}
	s.actions = nil
	return found
}

// spawns wants that exactly these ids have been asked for since the last look.
func (s *script) spawns(want ...int) {
	s.t.Helper()
	var got []int
	for _, a := range taken[spawn](s) {
		got = append(got, a.id)
	}
	if !slices.Equal(got, want) {
		s.t.Fatalf("children asked for: %v, want %v", got, want)
	}
}

// tells wants an event of the type among those since the last look, with a reason that contains the text.
func (s *script) tells(want EventType, reason string) {
	s.t.Helper()
	var seen []EventType
	for _, n := range taken[notice](s) {
		seen = append(seen, n.Type)
		if n.Type == want && strings.Contains(n.Reason, reason) {
			return
		}
	}
	s.t.Fatalf("events %v, want %s with reason %q", seen, want, reason)
}

func (s *script) has(slot int, want ...int) {
	s.t.Helper()
	var got []int
	for _, c := range s.state.slots[slot].children {
		got = append(got, c.id)
	}
	if !slices.Equal(got, want) {
		s.t.Fatalf("slot %d has children %v, want %v", slot, got, want)
	}
}

var crash = Exit{Code: -1, Signal: "SIGSEGV"}

func TestFailuresWaitOneSecondDoublingToThirty(t *testing.T) {
	s := newScript(t, 1)
	s.spawns(1)
	id := 1
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		s.is(spawned{id})
		s.is(exited{id, crash})
		s.pass(want*time.Second-time.Millisecond, id)
		s.spawns()
		s.pass(time.Millisecond)
		id++
		s.spawns(id)
	}
}

func TestAMinuteOfConsumingMakesTheNextFailureTheFirst(t *testing.T) {
	for _, test := range []struct {
		name    string
		healthy time.Duration
		want    time.Duration
	}{
		{"a second short of it", 59 * time.Second, 4 * time.Second},
		{"a minute", 60 * time.Second, time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newScript(t, 1)
			for id := 1; id <= 2; id++ {
				s.is(spawned{id})
				s.is(exited{id, crash})
				s.pass(30 * time.Second)
			}
			s.is(spawned{3})
			s.is(heard{3, message{}})
			s.pass(20*time.Second, 3) // up, but not consuming: that is no health
			s.is(heard{3, message{Ready: true}})
			s.pass(test.healthy, 3)
			s.is(exited{3, crash})
			if got := s.state.slots[0].due.Sub(s.now); got != test.want {
				t.Errorf("the next child comes after %v, want %v", got, test.want)
			}
		})
	}
}

func TestAFailedSpawnIsAFailureLikeAnother(t *testing.T) {
	s := newScript(t, 1)
	s.is(spawnFailed{1, errors.New("no memory")})
	s.tells(EventSpawnFailed, "")
	s.pass(999 * time.Millisecond)
	s.spawns()
	s.pass(time.Millisecond)
	s.spawns(2)
}

func TestAChildThatDoesNotSayHelloIsKilledAndReplaced(t *testing.T) {
	s := newScript(t, 1)
	s.is(spawned{1})
	s.pass(29 * time.Second)
	if got := taken[kill](s); len(got) != 0 {
		t.Fatalf("killed after 29 s")
	}
	s.pass(time.Second)
	if got := taken[kill](s); !slices.Equal(got, []kill{{1}}) {
		t.Fatalf("killed after 30 s: %v, want child 1", got)
	}
	s.pass(time.Second)
	s.spawns(2)
	s.is(exited{1, Exit{Code: -1, Signal: "SIGKILL"}})
	s.spawns()
	s.has(0, 2)
}

func TestASilentChildIsKilledAndReplaced(t *testing.T) {
	s := newScript(t, 1)
	s.ready(1)
	s.pass(5*time.Minute, 1)
	s.pass(59 * time.Second)
	if got := taken[kill](s); len(got) != 0 {
		t.Fatalf("killed after 59 s of silence")
	}
	s.pass(time.Second)
	s.tells(EventKilled, "liveness timeout")
}

func TestAChildWithoutTheServerStays(t *testing.T) {
	s := newScript(t, 1)
	s.is(spawned{1})
	s.spawns(1)
	s.is(heard{1, message{}})
	s.pass(time.Hour, 1) // it reports, and is never ready
	for _, a := range taken[any](s) {
		if _, ok := a.(notice); !ok {
			t.Errorf("action %#v on a child that only waits for its server", a)
		}
	}
	s.has(0, 1)
}

func TestAParentThatWasAsleepBlamesNobody(t *testing.T) {
	s := newScript(t, 2)
	s.ready(1)
	s.is(spawned{2})
	s.pass(time.Second, 1)
	s.now = s.now.Add(10 * time.Minute)
	s.is(tick{})
	if got := taken[kill](s); len(got) != 0 {
		t.Fatalf("%v were killed for the parent's own silence", got)
	}
	s.pass(61 * time.Second)
	if got := taken[kill](s); len(got) != 2 {
		t.Errorf("%d children were killed after a minute of their own silence, want 2", len(got))
	}
}

func TestStopSendsTermEachSecondAndKillAtLast(t *testing.T) {
	s := newScript(t, 1)
	s.ready(1)
	s.actions = nil
	s.is(askedToStop{})
	s.pass(14*time.Second, 1)
	if got := len(taken[term](s)); got != 15 {
		t.Errorf("TERM was sent %d times within 14 s, want 15", got)
	}
	s.pass(time.Second, 1)
	if got := taken[kill](s); !slices.Equal(got, []kill{{1}}) {
		t.Errorf("killed after 15 s: %v, want child 1", got)
	}
	if s.state.over() {
		t.Error("over while a child has not been waited for")
	}
	s.is(exited{1, Exit{Code: -1, Signal: "SIGKILL"}})
	if !s.state.over() {
		t.Error("not over though the last child is gone")
	}
}

func TestAStopThatComesDuringASpawnReachesThatChild(t *testing.T) {
	for _, test := range []struct {
		name  string
		event any
		want  any
	}{
		{"stop", askedToStop{}, term{1}},
		{"kill", askedToKill{}, kill{1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newScript(t, 2)
			s.is(test.event)
			s.spawns(1) // and no second one
			s.is(spawned{1})
			if !slices.Contains(taken[any](s), test.want) {
				t.Errorf("the child that came up is not sent %#v", test.want)
			}
		})
	}
}

func TestQuietReachesEveryChildOnce(t *testing.T) {
	s := newScript(t, 2)
	s.ready(1)
	s.actions = nil // child 2 is being started, not quietly
	s.is(askedToQuiet{})
	s.is(askedToQuiet{})
	s.ready(2)
	s.heartbeat(1)
	if got := taken[quiet](s); !slices.Equal(got, []quiet{{1}, {2}}) {
		t.Errorf("told to be quiet: %v, want children 1 and 2 once each", got)
	}
	s.is(exited{1, crash})
	s.pass(time.Second, 2)
	if got := taken[spawn](s); len(got) != 1 || !got[0].quiet {
		t.Errorf("spawned: %+v, want one child that starts quiet", got)
	}
}
