package swarm

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/postburner/postburner/retry"
)

// world is what the state machine's actions act on: processes that follow, hang and die as a test draws it.
type world struct {
	t        *rapid.T
	state    state
	now      time.Time
	alive    map[int]*proc // by the child's id
	ordered  []spawn       // not started yet
	everUsed map[int]bool
	stopped  bool
}

type proc struct {
	slot                    int
	hello, ready, recycling bool
	stuck, termed, killed   bool
	jobs                    uint64
}

func (w *world) step(event any) {
	w.t.Helper()
	next, actions := w.state.next(w.now, event)
	w.state = next
	spawns := 0
	for _, action := range actions {
		switch a := action.(type) {
		case spawn:
			spawns++
			if w.stopped {
				w.t.Fatalf("slot %d is to start a child after the stop", a.slot)
			}
			if w.everUsed[a.id] {
				w.t.Fatalf("id %d is used twice", a.id)
			}
			w.everUsed[a.id] = true
			w.ordered = append(w.ordered, a)
		case term:
			w.process(a.id, "TERM").termed = true
		case kill:
			w.process(a.id, "KILL").killed = true
		case quiet:
			w.process(a.id, "quiet")
		}
	}
	if spawns > 1 || len(w.ordered) > 1 {
		w.t.Fatalf("%d spawns in one step, %d at once; a stop between them would not be seen", spawns, len(w.ordered))
	}
	w.check()
}

func (w *world) process(id int, what string) *proc {
	p := w.alive[id]
	if p == nil {
		w.t.Fatalf("%s for child %d, which does not exist", what, id)
	}
	return p
}

// check holds what is true at every moment.
func (w *world) check() {
	w.t.Helper()
	for i := range w.state.slots {
		s := &w.state.slots[i]
		staying := s.staying()
		if len(s.children) > slotProcesses {
			w.t.Fatalf("slot %d has %d processes, want at most %d", i, len(s.children), slotProcesses)
		}
		if len(staying) == 2 && (!w.state.replacement.on || w.state.replacement.slot != i) {
			w.t.Fatalf("slot %d has two children that stay, and is not being replaced", i)
		}
	}
	known := 0
	w.state.each(func(_ int, c *child) {
		known++
		if w.alive[c.id] == nil && c.phase > spawning {
			w.t.Fatalf("child %d is believed to exist", c.id)
		}
	})
	if want := len(w.alive) + len(w.ordered); known != want {
		w.t.Fatalf("%d children are known, %d exist or are being started", known, want)
	}
}

func (w *world) say(id int) {
	p := w.alive[id]
	p.hello = true
	w.step(heard{id, message{Ready: p.ready, Recycling: p.recycling, Stuck: p.stuck, Heartbeat: Heartbeat{Started: p.jobs}}})
}

func (w *world) start(fails bool) {
	a := w.ordered[0]
	w.ordered = w.ordered[1:]
	if fails {
		w.step(spawnFailed{a.id, errors.New("no such program")})
		return
	}
	w.alive[a.id] = &proc{slot: a.slot}
	w.step(spawned{a.id})
}

func (w *world) end(id int, exit Exit) {
	delete(w.alive, id)
	w.step(exited{id, exit})
}

// draw lets one thing happen.
func (w *world) draw() {
	t := w.t
	ids := make([]int, 0, len(w.alive))
	w.state.each(func(_ int, c *child) {
		if w.alive[c.id] != nil {
			ids = append(ids, c.id)
		}
	})
	what := []string{"time", "time", "quiet", "restart"}
	if len(w.ordered) > 0 {
		what = append(what, "start", "start", "start fails")
	}
	if len(ids) > 0 {
		what = append(what, "heartbeat", "heartbeat", "ready", "ready", "recycling", "stuck", "jobs", "exit", "crash", "memory")
	}
	act := rapid.SampledFrom(what).Draw(t, "what")
	var id int
	if len(ids) > 0 {
		id = rapid.SampledFrom(ids).Draw(t, "child")
	}
	switch act {
	case "time":
		w.now = w.now.Add(time.Duration(rapid.IntRange(1, 2000).Draw(t, "ms")) * time.Millisecond)
		if rapid.IntRange(0, 20).Draw(t, "asleep") == 0 {
			w.now = w.now.Add(5 * time.Minute)
		}
		w.step(tick{})
	case "quiet":
		w.step(askedToQuiet{})
	case "restart":
		w.step(askedToRestart{})
	case "start":
		w.start(false)
	case "start fails":
		w.start(true)
	case "heartbeat":
		w.say(id)
	case "ready":
		w.alive[id].ready = true
		w.say(id)
	case "recycling":
		w.alive[id].recycling = true
		w.say(id)
	case "stuck":
		w.alive[id].stuck = true
		w.say(id)
	case "jobs":
		w.alive[id].jobs++
	case "exit":
		w.end(id, Exit{Code: rapid.SampledFrom([]int{0, 1, ExitRecycled}).Draw(t, "code")})
	case "crash":
		w.end(id, Exit{Code: -1, Signal: "SIGSEGV"})
	case "memory":
		w.step(measured{id, rapid.SampledFrom([]int64{1, 1 << 40}).Draw(t, "rss")})
	}
}

// settle lets everybody behave for a while: children start, consume, and end when asked to.
func (w *world) settle(rounds int) {
	for range rounds {
		for len(w.ordered) > 0 {
			w.start(false)
		}
		was := w.state // the next states are others
		was.each(func(_ int, c *child) {
			p := w.alive[c.id]
			switch {
			case p == nil:
			case p.killed || p.termed:
				w.end(c.id, Exit{Code: 0})
			case p.recycling:
				w.end(c.id, Exit{Code: ExitRecycled})
			default:
				p.ready, p.stuck = true, false
				w.say(c.id)
			}
		})
		w.now = w.now.Add(time.Second)
		w.step(tick{})
	}
}

func newWorld(t *rapid.T) *world {
	forks := rapid.IntRange(1, 4).Draw(t, "forks")
	opts := Options{
		Forks: forks, BootTimeout: 30 * time.Second, ReadyTimeout: 30 * time.Second, LivenessTimeout: time.Minute,
		ShutdownTimeout: 10 * time.Second, HealthyAfter: time.Minute, MemoryLimit: 1 << 30,
		Backoff: retry.Curve{Base: time.Second, Factor: 2, Max: 30 * time.Second},
	}
	w := &world{t: t, state: newState(opts), now: time.Unix(1e9, 0), alive: map[int]*proc{}, everUsed: map[int]bool{}}
	w.step(tick{})
	return w
}

func TestNoSlotIsLostOrDoubledWhateverHappens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(0, 150).Draw(t, "events") {
			w.draw()
		}
		w.settle(300)
		for i := range w.state.slots {
			s := w.state.slots[i]
			if len(s.children) != 1 || s.children[0].leaving || s.children[0].phase != consuming || s.children[0].mark != causeNone {
				t.Fatalf("slot %d has settled with %s, want one child that consumes", i, describe(s.children))
			}
			if s.failures != 0 {
				t.Errorf("slot %d still counts %d failures after minutes of health", i, s.failures)
			}
		}
		if w.state.replacement.on || w.state.restart {
			t.Fatalf("a replacement (%+v) or restart (%v) is still on", w.state.replacement, w.state.restart)
		}
	})
}

func TestStopEndsWithNoChildWhateverHappens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(0, 100).Draw(t, "events before") {
			w.draw()
		}
		w.stopped = true
		stop := any(askedToStop{})
		if rapid.Bool().Draw(t, "kill") {
			stop = askedToKill{}
		}
		w.step(stop)
		for range rapid.IntRange(0, 50).Draw(t, "events after") {
			w.draw()
		}
		// From here on nobody follows: only KILL ends a child.
		for seconds := 0; !w.state.over(); seconds++ {
			if limit := 10 + 5 + 2; seconds > limit {
				t.Fatalf("children are left %d s after the stop, with a shutdown timeout of 10 s", seconds)
			}
			for len(w.ordered) > 0 {
				w.start(false)
			}
			was := w.state // the next states are others
			was.each(func(_ int, c *child) {
				if p := w.alive[c.id]; p != nil && p.killed {
					w.end(c.id, Exit{Code: -1, Signal: "SIGKILL"})
				}
			})
			w.now = w.now.Add(time.Second)
			w.step(tick{})
		}
	})
}

// next must leave the state that it is given alone: Status reads it while the next is made.
func TestNextLeavesTheOldStateAlone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			old := w.state
			before := fmt.Sprintf("%+v", old)
			w.draw()
			if after := fmt.Sprintf("%+v", old); after != before {
				t.Fatalf("the old state changed:\n%s\n%s", before, after)
			}
		}
	})
}

func describe(children []child) string {
	text := fmt.Sprintf("%d children:", len(children))
	for _, c := range children {
		text += fmt.Sprintf(" {id %d phase %d leaving %v mark %q}", c.id, c.phase, c.leaving, c.mark)
	}
	return text
}
