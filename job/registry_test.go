package job_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postburner/postburner/job"
)

type byValue struct{ N int }

func (byValue) Kind() string { return "value" }

type byPointer struct{ N int }

func (*byPointer) Kind() string { return "pointer" }

func run(t *testing.T, r *job.Registry, kind, arguments string) error {
	t.Helper()
	h, ok := r.Lookup(kind)
	if !ok {
		t.Fatalf("no handler for %s", kind)
	}
	j := &job.Job{Envelope: &job.Envelope{Kind: kind, Arguments: []byte(arguments)}}
	return h.HandleJob(job.NewContext(t.Context(), j), j)
}

func TestTypedHandlers(t *testing.T) {
	t.Parallel()
	r := job.NewRegistry()
	var got []int
	job.Handle(r, func(_ context.Context, a byValue) error { got = append(got, a.N); return nil })
	job.Handle(r, func(ctx context.Context, a *byPointer) error {
		if job.FromContext(ctx).Kind != "pointer" {
			t.Errorf("the context carries %v", job.FromContext(ctx))
		}
		got = append(got, a.N)
		return nil
	})
	for range 2 { // each job has arguments of its own
		if err := errors.Join(run(t, r, "value", `[{"N":1}]`), run(t, r, "pointer", `[{"N":2}]`), run(t, r, "pointer", `[]`)); err != nil {
			t.Fatal(err)
		}
	}
	if fmt.Sprint(got) != "[1 2 0 1 2 0]" {
		t.Errorf("arguments %v", got)
	}
	if err := run(t, r, "value", `[{"N":"x"}]`); err == nil || job.VerdictOf(err).Action != job.ActionRetry {
		t.Errorf("arguments that do not fit: %v, want a failed attempt", err)
	}
	if fmt.Sprint(r.Kinds()) != "[pointer value]" {
		t.Errorf("kinds %v", r.Kinds())
	}
}

func TestMiddlewareWrapsInOrder(t *testing.T) {
	t.Parallel()
	var trace []string
	mark := func(name string) job.Middleware {
		return func(next job.Handler) job.Handler {
			return job.HandlerFunc(func(ctx context.Context, j *job.Job) error {
				trace = append(trace, name)
				return next.HandleJob(ctx, j)
			})
		}
	}
	r := job.NewRegistry()
	r.Use(mark("first"))
	job.Handle(r, func(context.Context, byValue) error { trace = append(trace, "handler"); return nil }, mark("own 1"), mark("own 2"))
	r.Use(mark("second"))
	if err := run(t, r, "value", `[]`); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(trace, ", "); got != "first, second, own 1, own 2, handler" {
		t.Errorf("order: %s", got)
	}
}

func TestMistakesInTheProgramPanic(t *testing.T) {
	t.Parallel()
	h := job.HandlerFunc(func(context.Context, *job.Job) error { return nil })
	for want, f := range map[string]func(r *job.Registry){
		"empty kind":                         func(r *job.Registry) { r.Handle(" ", h) },
		`handler of kind "a" is nil`:         func(r *job.Registry) { r.Handle("a", nil) },
		`kind "b" has a handler already`:     func(r *job.Registry) { r.Handle("b", h); r.Handle("b", h) },
		"handler of job_test.byValue is nil": func(r *job.Registry) { job.Handle[byValue](r, nil) },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
					t.Errorf("panic %q, want %q", got, want)
				}
			}()
			f(job.NewRegistry())
		}()
	}
}

func TestARegistryIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	r := job.NewRegistry()
	var running sync.WaitGroup
	for i := range 20 {
		running.Go(func() {
			r.Handle(fmt.Sprint(i), job.HandlerFunc(func(context.Context, *job.Job) error { return nil }))
			r.Use(func(h job.Handler) job.Handler { return h })
			if _, ok := r.Lookup(fmt.Sprint(i)); !ok {
				t.Errorf("kind %d is not there after Handle", i)
			}
			r.Kinds()
		})
	}
	running.Wait()
}

func TestUnknownKindSaysWhatThereIs(t *testing.T) {
	t.Parallel()
	err := &job.UnknownKindError{Kind: "x", Kinds: []string{"a", "b"}}
	if want := `no handler for kind "x": register one, or correct the kind; registered are a, b`; err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	for _, c := range []struct {
		name string
		err  error
		want job.Verdict
		text string
	}{
		{"nil is done", nil, job.Verdict{}, ""},
		{"any error is a retry", cause, job.Verdict{Action: job.ActionRetry, Err: cause}, "cause"},
		{"a chosen delay", job.RetryIn(time.Minute, cause), job.Verdict{Action: job.ActionRetry, Delay: time.Minute, Chosen: true}, "retry in 1m0s: cause"},
		{"a negative delay is none", job.RetryIn(-1, nil), job.Verdict{Action: job.ActionRetry, Chosen: true}, "retry in 0s"},
		{"discard without a cause", job.Discard(nil), job.Verdict{Action: job.ActionDiscard}, "discard"},
		{"bury within other errors", fmt.Errorf("outer: %w", job.Bury(cause)), job.Verdict{Action: job.ActionBury}, "outer: bury: cause"},
		{"the outermost counts", job.Discard(job.Bury(cause)), job.Verdict{Action: job.ActionDiscard}, "discard: bury: cause"},
	} {
		got := job.VerdictOf(c.err)
		if got.Action != c.want.Action || got.Delay != c.want.Delay || got.Chosen != c.want.Chosen || !errors.Is(got.Err, c.err) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
		if c.err != nil && c.err.Error() != c.text {
			t.Errorf("%s: text %q, want %q", c.name, c.err, c.text)
		}
	}
	if !errors.Is(job.RetryIn(1, cause), cause) {
		t.Error("the cause cannot be found in RetryIn")
	}
	if !errors.Is(&job.PanicError{Value: cause}, cause) {
		t.Error("an error that was panicked with cannot be found")
	}
}

func TestAttemptAsksOnceAndNotAgainOnlyIfItWasAnswered(t *testing.T) {
	t.Parallel()
	calls := 0
	j := &job.Job{Envelope: &job.Envelope{RetryCount: 2}, AttemptFunc: func(context.Context) (int, error) {
		calls++
		if calls == 1 {
			return 0, errors.New("not now")
		}
		return 7, nil
	}}
	if _, err := j.Attempt(t.Context()); err == nil {
		t.Error("the error got lost")
	}
	for range 2 {
		if n, err := j.Attempt(t.Context()); n != 7 || err != nil {
			t.Errorf("Attempt = %d, %v, want 7", n, err)
		}
	}
	if calls != 2 {
		t.Errorf("the server was asked %d times, want 2", calls)
	}
	alone := &job.Job{Envelope: &job.Envelope{RetryCount: 2}}
	if n, err := alone.Attempt(t.Context()); n != 3 || err != nil {
		t.Errorf("without a worker Attempt = %d, %v, want 3", n, err)
	}
}

func TestLogNamesTheJob(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	j := &job.Job{Envelope: &job.Envelope{Kind: "A", ID: "x"}, BeanstalkID: 5, Logger: slog.New(slog.NewTextHandler(&out, nil))}
	j.Log().Info("hello")
	if want := "msg=hello kind=A job_id=x beanstalkd_id=5\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("logged %q, want %q", out.String(), want)
	}
	if job.FromContext(t.Context()) != nil {
		t.Error("a context without a job carries one")
	}
}
