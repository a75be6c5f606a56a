// Package testwait has what tests of running programs need: [Until] waits for a
// condition, [Log] collects what is written meanwhile.
package testwait

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
)

// Patience is how long a condition may take on a busy machine. No test is faster or
// slower for it: it only bounds how long a failing one waits.
const Patience = 60 * time.Second

// poll is how often a condition is looked at.
const poll = 10 * time.Millisecond

// Until waits until the condition holds, which it looks at every 10 ms, from the
// goroutine of the caller. After Patience, 60 s, it ends the test with seen, the state
// that the condition saw last. Like t.Fatal it is to be called from the test's own goroutine.
func Until(t testing.TB, condition func() (ok bool, seen string)) {
	t.Helper()
	deadline := time.Now().Add(Patience)
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		ok, seen := condition()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", Patience, seen)
		}
		<-tick.C
	}
}

// Log is an io.Writer that keeps what is written, for loggers and for the output of
// processes. Its zero value is empty and ready. It is safe for concurrent use, and must not be copied.
type Log struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

// Write appends p. It always returns len(p) and nil.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// String returns all that has been written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Contains says whether the text has been written so far.
func (l *Log) Contains(text string) bool { return strings.Contains(l.String(), text) }

// Count returns how often the text has been written so far, without overlaps.
func (l *Log) Count(text string) int { return strings.Count(l.String(), text) }
