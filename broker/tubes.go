package broker

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

func (s *session) use(name string) {
	if !validTube(name) {
		s.reply(replyBadFormat)
		return
	}
	s.locked("cmd-use", func(e *engine) string {
		t := e.tube(name)
		t.using++
		s.client.use.using--
		e.vanish(s.client.use)
		s.client.use = t
		return "USING " + name + "\r\n"
	})
}

func (s *session) watch(name string) {
	if !validTube(name) {
		s.reply(replyBadFormat)
		return
	}
	s.locked("cmd-watch", func(e *engine) string {
		t := e.tube(name)
		if !slices.Contains(s.client.watch, t) {
			t.watched++
			s.client.watch = append(s.client.watch, t)
		}
		return s.watching()
	})
}

func (s *session) watching() string { return fmt.Sprintf("WATCHING %d\r\n", len(s.client.watch)) }

func (s *session) ignore(name string) {
	if !validTube(name) {
		s.reply(replyBadFormat)
		return
	}
	s.locked("cmd-ignore", func(e *engine) string {
		at := slices.IndexFunc(s.client.watch, func(t *tube) bool { return t.name == name })
		if at < 0 {
			return s.watching()
		}
		if len(s.client.watch) == 1 {
			return "NOT_IGNORED\r\n"
		}
		t, last := s.client.watch[at], len(s.client.watch)-1
		s.client.watch[at] = s.client.watch[last] // as beanstalkd fills the gap: it shows in list-tubes-watched
		s.client.watch = slices.Delete(s.client.watch, last, last+1)
		t.watched--
		e.vanish(t)
		return s.watching()
	})
}

func (s *session) listTubeUsed(string) {
	s.locked("cmd-list-tube-used", func(*engine) string { return "USING " + s.client.use.name + "\r\n" })
}

func (s *session) listTubes(string) {
	s.locked("cmd-list-tubes", func(e *engine) string { return list(slices.Sorted(maps.Keys(e.tubes))) })
}

func (s *session) listTubesWatched(string) {
	s.locked("cmd-list-tubes-watched", func(*engine) string {
		var names []string
		for _, t := range s.client.watch {
			names = append(names, t.name)
		}
		return list(names)
	})
}

func list(names []string) string {
	body := "---\n"
	for _, name := range names {
		body += "- " + name + "\n"
	}
	return ok(body)
}

func ok(body string) string { return fmt.Sprintf("OK %d\r\n%s\r\n", len(body), body) }

func (s *session) pauseTube(args string) {
	name, rest, found := strings.Cut(strings.TrimLeft(args, " "), " ")
	fields, numeric := numbers(rest, 32)
	if !found || !numeric || !validTube(name) {
		s.reply(replyBadFormat)
		return
	}
	s.locked("cmd-pause-tube", func(e *engine) string {
		t := e.tubes[name]
		if t == nil {
			return replyNotFound
		}
		t.pauses++
		// A pause of 0 still has to end, so that waiting clients look again.
		t.pause = max(seconds(fields[0]), 1)
		t.until = time.Now().Add(t.pause)
		e.paused[t] = struct{}{}
		e.schedule()
		return "PAUSED\r\n"
	})
}

func (s *session) peek(args string) {
	id, valid := s.one(args)
	if !valid {
		return
	}
	s.peekAt("cmd-peek", func(e *engine) *job { return e.jobs[id] })
}

func (s *session) peekReady(string) {
	s.peekAt("cmd-peek-ready", func(*engine) *job { return s.client.use.ready.first() })
}

func (s *session) peekDelayed(string) {
	s.peekAt("cmd-peek-delayed", func(e *engine) *job {
		var soonest *job
		for _, j := range e.delays.jobs {
			if j.tube == s.client.use && (soonest == nil || byDeadline(j, soonest)) {
				soonest = j
			}
		}
		return soonest
	})
}

func (s *session) peekBuried(string) {
	s.peekAt("cmd-peek-buried", func(*engine) *job {
		if len(s.client.use.buried) == 0 {
			return nil
		}
		return s.client.use.buried[0]
	})
}

func (s *session) peekAt(stat string, find func(e *engine) *job) {
	s.engine.mu.Lock()
	s.engine.counts[stat]++
	j := find(s.engine)
	s.engine.mu.Unlock()
	s.found(j) // id and body never change
}
