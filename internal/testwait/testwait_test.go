package testwait_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postburner/postburner/internal/testwait"
)

// failing is a test that may fail.
type failing struct {
	testing.TB
	message string
}

func (*failing) Helper() {}

func (f *failing) Fatalf(format string, args ...any) {
	f.message = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// until returns how long Until took, and the message with which it ended the test.
func until(t *testing.T, condition func() (bool, string)) (took time.Duration, message string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		inner, start := &failing{TB: t}, time.Now()
		var running sync.WaitGroup
		running.Go(func() { testwait.Until(inner, condition) })
		running.Wait()
		took, message = time.Since(start), inner.message
	})
	return took, message
}

func TestUntilReturnsOnceTheConditionHolds(t *testing.T) {
	t.Parallel()
	if took, message := until(t, func() (bool, string) { return true, "" }); took != 0 || message != "" {
		t.Errorf("what holds at once took %v and said %q, want no wait", took, message)
	}
	looks := 0
	took, message := until(t, func() (bool, string) { looks++; return looks == 4, "not yet" })
	if took != 30*time.Millisecond || message != "" {
		t.Errorf("what holds at the fourth look took %v and said %q, want 30ms", took, message)
	}
}

func TestUntilEndsTheTestWithWhatWasSeenLast(t *testing.T) {
	t.Parallel()
	looks := 0
	took, message := until(t, func() (bool, string) { looks++; return false, fmt.Sprint("look ", looks) })
	if want := fmt.Sprint("not within 1m0s: look ", looks); message != want {
		t.Errorf("it says %q, want %q", message, want)
	}
	if took < testwait.Patience || took > testwait.Patience+time.Second {
		t.Errorf("it took %v, want %v", took, testwait.Patience)
	}
}

func TestALogIsWrittenAndReadAtTheSameTime(t *testing.T) {
	t.Parallel()
	var log testwait.Log
	if log.String() != "" || log.Contains("line") || log.Count("line") != 0 {
		t.Errorf("the zero Log holds %q", log.String())
	}
	var running sync.WaitGroup
	for i := range 20 {
		running.Go(func() {
			_, _ = fmt.Fprintf(&log, "line %d;", i) // always nil
			if !log.Contains(fmt.Sprintf("line %d;", i)) {
				t.Errorf("line %d was written and is not there", i)
			}
		})
	}
	running.Wait()
	if n := log.Count("line "); n != 20 {
		t.Errorf("%d lines, want 20: %s", n, log.String())
	}
}
