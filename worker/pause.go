package worker

import (
	"sync"
	"time"

	"github.com/postburner/postburner/retry"
)

// storePause is a time in which no job is reserved, since the server cannot store a failed one.
type storePause struct {
	mu       sync.Mutex // guards what follows
	until    time.Time
	failures int
}

// pauseCurve is how long each pause is.
var pauseCurve = retry.Curve{Base: 5 * time.Second, Factor: 2, Max: time.Minute, Jitter: 0.2}

// pauseForgotten is how long the server has to do well before the next pause counts as the first.
const pauseForgotten = 5 * time.Minute

// begin starts a pause. It returns 0 if one is on already.
func (s *storePause) begin(now time.Time) (wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Before(s.until) {
		return 0
	}
	if now.Sub(s.until) > pauseForgotten {
		s.failures = 0
	}
	s.failures++
	wait = pauseCurve.Delay(s.failures)
	s.until = now.Add(wait)
	return wait
}

// remaining returns how long the pause goes on.
func (s *storePause) remaining(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.until.Sub(now)
}

// pauseStore begins a pause because the server could not do something.
func (p *Pool) pauseStore(what string, err error, attrs ...any) {
	if wait := p.pause.begin(time.Now()); wait > 0 {
		p.opts.Logger.Error("the server could not "+what+"; no jobs are reserved for a while. Free memory, or disk for its binlog; restart it to get back what it could not store",
			append([]any{"error", err, "wait", wait}, attrs...)...)
	}
}
