package swarm

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/postburner/postburner/retry"
)

func TestNewNamesEveryOptionThatIsWrong(t *testing.T) {
	t.Parallel()
	if err := supported(); err != nil {
		t.Skip(err)
	}
	_, err := New(Options{Forks: 0, Threads: -1, BootTimeout: -time.Second, MemoryLimit: -1})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"Forks is 0", "Threads is -1", "Command is missing", "BootTimeout is -1s", "MemoryLimit is -1"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q, want it to say %q", err, want)
		}
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	o := Options{Forks: 1, Threads: 1, Command: func(int) (*exec.Cmd, error) { return nil, errors.New("none") }}
	if err := o.complete(); err != nil {
		t.Fatal(err)
	}
	got := [...]time.Duration{o.BootTimeout, o.ReadyTimeout, o.LivenessTimeout, o.ShutdownTimeout, o.MemoryCheck, o.HealthyAfter}
	want := [...]time.Duration{30 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 10 * time.Second, time.Minute}
	if got != want {
		t.Errorf("timeouts are %v, want %v", got, want)
	}
	if want := (retry.Curve{Base: time.Second, Factor: 2, Max: 30 * time.Second}); o.Backoff != want {
		t.Errorf("backoff is %+v, want %+v", o.Backoff, want)
	}
}
