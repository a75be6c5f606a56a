package broker

import (
	"strings"
	"time"
)

// safetyMargin is how long before the end of a lease a waiting client is warned.
const safetyMargin = time.Second

func (s *session) reserve(string) { s.reserveFor("cmd-reserve", -1) }

func (s *session) reserveWithTimeout(args string) {
	// beanstalkd reads the timeout with strtol: what is no number is 0, and a negative one waits for ever.
	timeout := time.Duration(0)
	args = strings.TrimLeft(args, " ")
	if n, _, ok := number(args, 31); ok {
		timeout = seconds(n)
	} else if len(args) > 1 && args[0] == '-' {
		if n, _, ok := number(args[1:], 31); ok && n > 0 {
			timeout = -1
		}
	}
	s.reserveFor("cmd-reserve-with-timeout", timeout)
}

// reserveFor waits for a job; a timeout below 0 is none.
func (s *session) reserveFor(stat string, timeout time.Duration) {
	e := s.engine
	deadline := time.Now().Add(timeout)
	e.mu.Lock()
	e.counts[stat]++
	if !s.client.worker {
		s.client.worker = true
		e.counts["current-workers"]++
	}
	if j := e.next(s.client); j != nil {
		e.take(j)
		e.lease(j, s.client)
		e.schedule()
		e.mu.Unlock()
		s.reserved(j)
		return
	}
	if e.deadlineSoon(s.client) {
		e.mu.Unlock()
		s.reply(replyDeadlineSoon)
		return
	}
	if timeout == 0 {
		e.mu.Unlock()
		s.reply(replyTimedOut)
		return
	}
	e.wait(s.client)
	warn := e.warnAt(s.client)
	e.mu.Unlock()
	s.awaitJob(timeout, deadline, warn)
}

// awaitJob is the rest of a reserve that has to wait.
func (s *session) awaitJob(timeout time.Duration, deadline, warn time.Time) {
	reply := replyTimedOut
	var timer <-chan time.Time
	if timeout > 0 {
		timer = time.After(time.Until(deadline))
	}
	if !warn.IsZero() && (timeout < 0 || warn.Before(deadline)) {
		timer = time.After(time.Until(warn))
		reply = replyDeadlineSoon
	}
	alive := s.await(timer, s.client.wake)
	s.engine.mu.Lock()
	s.engine.unwait(s.client)
	j := s.client.got // even if the time ran out in that instant
	s.client.got = nil
	select {
	case <-s.client.wake:
	default:
	}
	s.engine.mu.Unlock()
	if j != nil {
		s.reserved(j)
	} else {
		s.reply(reply)
	}
	s.over = s.over || !alive
}

// soonest returns when the first lease of a client ends, zero if it holds nothing.
func (e *engine) soonest(c *client) time.Time {
	var at time.Time
	for j := range c.held {
		if at.IsZero() || j.deadline.Before(at) {
			at = j.deadline
		}
	}
	return at
}

func (e *engine) deadlineSoon(c *client) bool {
	at := e.soonest(c)
	return !at.IsZero() && time.Until(at) <= safetyMargin
}

func (e *engine) warnAt(c *client) time.Time {
	if at := e.soonest(c); !at.IsZero() {
		return at.Add(-safetyMargin)
	}
	return time.Time{}
}

func (s *session) reserveJob(args string) {
	id, ok := s.one(args)
	if !ok {
		return
	}
	e := s.engine
	e.mu.Lock()
	j := e.jobs[id]
	if j == nil || j.state == reserved {
		e.mu.Unlock()
		s.reply(replyNotFound)
		return
	}
	if !s.client.worker {
		s.client.worker = true
		e.counts["current-workers"]++
	}
	e.take(j)
	e.lease(j, s.client)
	e.schedule()
	e.mu.Unlock()
	s.reserved(j)
}
