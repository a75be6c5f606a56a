package scheduler

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/postburner/postburner/beanstalk"
)

// panicking is a tube whose reserve panics.
type panicking struct{ tube }

func (panicking) Reserve(context.Context, time.Duration) (*beanstalk.Job, error) {
	panic("no such luck")
}

func (panicking) Disconnect() {}

// signalled is a log that tells of its first line, for the test to go on.
type signalled struct {
	strings.Builder
	written func()
}

func (s *signalled) Write(p []byte) (int, error) {
	defer s.written()
	return s.Builder.Write(p)
}

func TestAPanicIsLoggedWithItsStackAndEndsNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log := &signalled{written: cancel}
	s, err := New(Options{Beanstalk: beanstalk.Options{URL: "beanstalk://127.0.0.1:1"}, Tube: "t", Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	s.tube = panicking{}
	if err := s.Run(ctx); err != nil {
		t.Errorf("Run = %v, want nil after a stop", err)
	}
	for _, want := range []string{
		"level=ERROR", `msg="watchdog: turn failed, trying again in 1s"`, "tube=t", `error="panic: no such luck"`, "stack=", "panicking.Reserve",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q: %s", want, log.String())
		}
	}
}
