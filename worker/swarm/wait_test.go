package swarm

import (
	"testing"
	"time"
)

// patience is how long a condition may take on a busy machine. No test is faster or
// slower for it: it only bounds how long a failing one waits.
const patience = 60 * time.Second

// eventually waits until the condition holds; the text says what was seen last.
func eventually(t *testing.T, condition func() (ok bool, seen string)) {
	t.Helper()
	deadline := time.Now().Add(patience)
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		ok, seen := condition()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, seen)
		}
		<-look.C
	}
}
