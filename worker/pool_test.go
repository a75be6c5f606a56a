package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/broker"
	"github.com/postburner/postburner/broker/brokertest"
	"github.com/postburner/postburner/job"
	"github.com/postburner/postburner/retry"
	"github.com/postburner/postburner/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const tube = "postburner.test.default"

// rig is a pool at work on an embedded broker, and what was seen of it.
type rig struct {
	t      *testing.T
	broker *brokertest.Embedded
	pool   *worker.Pool
	put    *beanstalk.Conn
	stop   context.CancelFunc
	ended  chan error

	mu     sync.Mutex
	events []worker.Event
	seen   chan struct{} // an event was added
}

// start runs a pool with these handlers. Options that are zero are set for a test.
func start(t *testing.T, o worker.Options, handlers map[string]job.HandlerFunc) *rig {
	t.Helper()
	b := brokertest.Start(t)
	return startOn(t, b, o, handlers)
}

func startOn(t *testing.T, b *brokertest.Embedded, o worker.Options, handlers map[string]job.HandlerFunc) *rig {
	t.Helper()
	r := &rig{t: t, broker: b, ended: make(chan error, 1), seen: make(chan struct{}, 1)}
	registry := job.NewRegistry()
	for kind, h := range handlers {
		registry.Handle(kind, h)
	}
	o.Registry, o.Tubes, o.Beanstalk = registry, []string{tube}, beanstalk.Options{URL: b.URL()}
	if o.Threads == 0 {
		o.Threads = 2
	}
	if o.Observer == nil {
		o.Observer = worker.ObserverFunc(r.observe)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	pool, err := worker.New(o)
	if err != nil {
		t.Fatal(err)
	}
	r.pool = pool
	if r.put, err = beanstalk.New(beanstalk.Options{URL: b.URL()}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	go func() { r.ended <- pool.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		r.put.Close()
	})
	return r
}

func (r *rig) observe(e worker.Event) {
	r.mu.Lock()
	r.events = append(r.events, e)
	r.mu.Unlock()
	select {
	case r.seen <- struct{}{}:
	default:
	}
}

// body is a job without arguments; more are further keys.
func body(kind, more string) string {
	return fmt.Sprintf(`{"job_class":%q,"job_id":"id-%s","arguments":[]%s}`, kind, kind, more)
}

func (r *rig) enqueue(text string, ttr time.Duration) uint64 {
	r.t.Helper()
	id, err := r.put.Put(r.t.Context(), beanstalk.Put{Tube: tube, Body: []byte(text), Priority: 7, TTR: ttr})
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

// event waits for the first event of a type.
func (r *rig) event(want worker.EventType) worker.Event {
	r.t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		r.mu.Lock()
		at := slices.IndexFunc(r.events, func(e worker.Event) bool { return e.Type == want })
		if at >= 0 {
			e := r.events[at]
			r.mu.Unlock()
			return e
		}
		seen := fmt.Sprintf("%+v", r.events)
		r.mu.Unlock()
		select {
		case <-r.seen:
		case <-deadline:
			r.t.Fatalf("no event %s within 30 s; events %s", want, seen)
		}
	}
}

// until waits for a condition that no event tells of.
func (r *rig) until(what string, condition func() bool) {
	r.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); !condition(); <-tick.C {
		if time.Now().After(deadline) {
			r.t.Fatalf("%s: not within 30 s; jobs %+v, stats %+v", what, r.broker.Jobs(tube), r.pool.Stats())
		}
	}
}

func (r *rig) empty() {
	r.t.Helper()
	r.until("the tube is empty", func() bool { return len(r.broker.Jobs(tube)) == 0 })
}

// end stops the pool and wants Run to return this.
func (r *rig) end(want error) {
	r.t.Helper()
	r.stop()
	select {
	case err := <-r.ended:
		if !errors.Is(err, want) {
			r.t.Errorf("Run = %v, want %v", err, want)
		}
	case <-time.After(30 * time.Second):
		r.t.Fatal("Run has not returned within 30 s of the stop")
	}
}

func (r *rig) job() broker.Job {
	r.t.Helper()
	jobs := r.broker.Jobs(tube)
	if len(jobs) != 1 {
		r.t.Fatalf("%d jobs, want one: %+v", len(jobs), jobs)
	}
	return jobs[0]
}

func returning(err error) job.HandlerFunc {
	return func(context.Context, *job.Job) error { return err }
}

func TestWhatAHandlerReturnsBecomesOfItsJob(t *testing.T) {
	t.Parallel()
	twice := retry.Policy{MaxRetries: 2, Curve: retry.Curve{Base: 3 * time.Second, Factor: 2}}
	never := retry.Policy{Curve: retry.Curve{Base: time.Second}}
	discard := retry.Policy{Curve: retry.Curve{Base: time.Second}, Exhausted: retry.Discard}
	failure := errors.New("no luck")
	for name, c := range map[string]struct {
		policy  retry.Policy
		handler job.HandlerFunc
		body    string
		event   worker.EventType
		state   string // "" is gone
		delay   time.Duration
		text    string // of the error or the reason
	}{
		"nil: done":                       {twice, returning(nil), body("k", ""), worker.EventPerform, "", 0, ""},
		"an error: released":              {twice, returning(failure), body("k", ""), worker.EventRetry, "delayed", 3 * time.Second, "no luck"},
		"a panic: released":               {twice, func(context.Context, *job.Job) error { panic("ouch") }, body("k", ""), worker.EventRetry, "delayed", 3 * time.Second, "panic: ouch"},
		"a Goexit: released":              {twice, func(context.Context, *job.Job) error { runtime.Goexit(); return nil }, body("k", ""), worker.EventRetry, "delayed", 3 * time.Second, "Goexit"},
		"an unknown kind: released":       {twice, returning(nil), body("other", ""), worker.EventRetry, "delayed", 3 * time.Second, `no handler for kind "other"`},
		"RetryIn: that delay":             {twice, returning(job.RetryIn(50*time.Second, failure)), body("k", ""), worker.EventRetry, "delayed", 50 * time.Second, "no luck"},
		"RetryIn 0: a second, durable":    {twice, returning(job.RetryIn(0, failure)), body("k", ""), worker.EventRetry, "delayed", time.Second, "no luck"},
		"Discard: deleted":                {twice, returning(job.Discard(failure)), body("k", ""), worker.EventDiscard, "", 0, "no luck"},
		"Bury: buried":                    {twice, returning(fmt.Errorf("so: %w", job.Bury(failure))), body("k", ""), worker.EventBury, "buried", 0, "no luck"},
		"a tracked job: buried":           {twice, returning(failure), body("k", `,"tracked":true`), worker.EventBury, "buried", 0, "tracked"},
		"a tracked job that is discarded": {twice, returning(job.Discard(failure)), body("k", `,"tracked":true`), worker.EventDiscard, "", 0, "no luck"},
		"a legacy job: buried":            {twice, returning(failure), `{"class":"k","args":[]}`, worker.EventBury, "buried", 0, "legacy"},
		"no retries: buried":              {never, returning(failure), body("k", ""), worker.EventBury, "buried", 0, "used up"},
		"no retries: discarded":           {discard, returning(failure), body("k", ""), worker.EventDiscard, "", 0, "used up"},
		"retries recorded by Ruby count":  {twice, returning(failure), body("k", `,"retry_count":1`), worker.EventRetry, "delayed", 6 * time.Second, "no luck"},
		"and use it up":                   {twice, returning(failure), body("k", `,"retry_count":2`), worker.EventBury, "buried", 0, "used up"},
		"the job's own limit":             {twice, returning(failure), body("k", `,"max_retries":0`), worker.EventBury, "buried", 0, "used up"},
		"no JSON: buried":                 {twice, returning(nil), "junk", worker.EventBury, "buried", 0, "not a JSON object"},
		"no object: buried":               {twice, returning(nil), "[]", worker.EventBury, "buried", 0, "not a JSON object"},
		"no kind: buried":                 {twice, returning(nil), "{}", worker.EventBury, "buried", 0, "names no kind"},
		"expired: discarded unrun":        {twice, returning(failure), body("k", `,"expires_at":"2020-01-01T00:00:00Z"`), worker.EventDiscard, "", 0, "expired"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, worker.Options{Retry: c.policy}, map[string]job.HandlerFunc{"k": c.handler})
			id := r.enqueue(c.body, time.Minute)
			e := r.event(c.event)
			if e.BeanstalkID != id {
				t.Errorf("the event is of job %d, want %d", e.BeanstalkID, id)
			}
			if text := fmt.Sprint(e.Reason, e.Err); !strings.Contains(text, c.text) {
				t.Errorf("the event says %q, want %q in it", text, c.text)
			}
			if c.state == "" {
				r.empty()
			} else if j := r.job(); j.State != c.state || j.Delay != c.delay || j.Priority != 7 {
				t.Errorf("the job is %+v, want it %s with delay %v and priority 7", j, c.state, c.delay)
			}
			before := r.pool.Stats().Started
			r.enqueue(`{"job_class":"next"}`, time.Minute)
			r.until("the consumers are still there", func() bool { return r.pool.Stats().Started == before+1 })
			r.end(nil)
		})
	}
}

func TestAKickedJobGetsOneAttemptMore(t *testing.T) {
	t.Parallel()
	var attempts []int
	r := start(t, worker.Options{Threads: 1, Retry: retry.Policy{Curve: retry.Curve{Base: time.Second}}}, map[string]job.HandlerFunc{
		"k": func(ctx context.Context, j *job.Job) error {
			n, err := j.Attempt(ctx)
			attempts = append(attempts, n) // one consumer, and read after its end
			return errors.Join(err, errors.New("no luck"))
		},
	})
	id := r.enqueue(body("k", ""), time.Minute)
	for round := 1; round <= 3; round++ {
		r.until("buried", func() bool { j := r.job(); return j.State == "buried" && j.Buries == round })
		if round < 3 {
			if err := r.put.KickJob(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.end(nil)
	if fmt.Sprint(attempts) != "[1 1 1]" {
		t.Errorf("attempts %v, want one more for each kick, none of them counted as a retry", attempts)
	}
}

func TestTheLimitIsExact(t *testing.T) {
	t.Parallel()
	const limit = 37
	var mu sync.Mutex
	started := 0
	recycling := 0
	r := start(t, worker.Options{Threads: 8, Limit: limit, Recycling: func() { recycling++ }}, map[string]job.HandlerFunc{
		"k": func(context.Context, *job.Job) error {
			mu.Lock()
			defer mu.Unlock()
			started++
			return nil
		},
	})
	for i := range 100 {
		r.enqueue(body("k", fmt.Sprintf(`,"n":%d`, i)), time.Minute)
	}
	if err := <-r.ended; !errors.Is(err, worker.ErrLimit) {
		t.Errorf("Run = %v, want ErrLimit", err)
	}
	if started != limit || recycling != 1 {
		t.Errorf("%d jobs were started and Recycling called %d times, want %d and once", started, recycling, limit)
	}
	r.until("all others are ready", func() bool {
		return !slices.ContainsFunc(r.broker.Jobs(tube), func(j broker.Job) bool { return j.State != "ready" })
	})
	ready := 0
	for _, j := range r.broker.Jobs(tube) {
		if j.State == "ready" && j.Releases+j.Timeouts == 0 && j.Priority == 7 {
			ready++
		}
	}
	if ready != 100-limit {
		t.Errorf("%d jobs are ready and unharmed, want %d", ready, 100-limit)
	}
	if s := r.pool.Stats(); s.Started != limit || s.Done != limit {
		t.Errorf("stats %+v, want %d started and done", s, limit)
	}
}

// hold is a handler that runs until release, or until its context ends, whose cause it then returns.
func hold(started chan<- context.Context, release <-chan struct{}) job.HandlerFunc {
	return func(ctx context.Context, _ *job.Job) error {
		started <- ctx
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func TestAStopLetsRunningJobsFinishAndStartsNoOther(t *testing.T) {
	t.Parallel()
	started, release := make(chan context.Context, 10), make(chan struct{})
	r := start(t, worker.Options{ReserveTimeout: time.Hour}, map[string]job.HandlerFunc{"k": hold(started, release)})
	r.enqueue(body("k", ""), time.Minute)
	<-started
	r.stop()
	r.until("the idle consumer has left", func() bool { return r.pool.Stats().Connected == 1 })
	late := r.enqueue(body("k", ""), time.Minute)
	close(release)
	r.end(nil)
	if j := r.job(); j.ID != late || j.State != "ready" || len(started) != 0 {
		t.Errorf("left is %+v, want job %d ready; %d more handlers started", j, late, len(started))
	}
}

func TestAtTheShutdownTimeoutJobsGoBackUnharmed(t *testing.T) {
	t.Parallel()
	started := make(chan context.Context, 1)
	r := start(t, worker.Options{ShutdownTimeout: 50 * time.Millisecond}, map[string]job.HandlerFunc{"k": hold(started, nil)})
	r.enqueue(body("k", ""), time.Minute)
	ctx := <-started
	r.end(nil)
	if !errors.Is(context.Cause(ctx), job.ErrShutdown) {
		t.Errorf("the context's cause is %v, want ErrShutdown", context.Cause(ctx))
	}
	r.until("the job is ready", func() bool { return r.job().State == "ready" }) // once the server has seen the hang-up
	if j := r.job(); j.Releases != 0 || j.Timeouts != 0 {
		t.Errorf("the job is %+v, want no attempt counted", j)
	}
	if e := r.event(worker.EventInterrupted); !errors.Is(e.Err, job.ErrShutdown) {
		t.Errorf("the event's error is %v, want what the handler returned", e.Err)
	}
}

func TestAHandlerThatSucceedsAfterTheShutdownTimeoutIsDone(t *testing.T) {
	t.Parallel()
	started := make(chan context.Context, 1)
	r := start(t, worker.Options{ShutdownTimeout: 50 * time.Millisecond}, map[string]job.HandlerFunc{
		"k": func(ctx context.Context, _ *job.Job) error {
			started <- ctx
			<-ctx.Done()
			return nil
		},
	})
	r.enqueue(body("k", ""), time.Minute)
	<-started
	r.end(nil)
	r.empty()
	if n := len(r.broker.Jobs(tube)); n != 0 || r.pool.Stats().Done != 1 {
		t.Errorf("%d jobs left, stats %+v, want it done", n, r.pool.Stats())
	}
}

func TestAHandlerThatIgnoresItsContextIsStuck(t *testing.T) {
	t.Parallel()
	started, release, gone := make(chan struct{}), make(chan struct{}), make(chan string)
	stuck := make(chan struct{}, 1)
	var log bytes.Buffer
	r := start(t, worker.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), ShutdownTimeout: 50 * time.Millisecond, StuckAfter: 50 * time.Millisecond, Stuck: func() { stuck <- struct{}{} }}, map[string]job.HandlerFunc{
		"k": func(_ context.Context, j *job.Job) error {
			close(started)
			<-release
			gone <- j.Tube // nobody else may have written to the job
			return nil
		},
	})
	r.enqueue(body("k", ""), time.Minute)
	<-started
	r.stop()
	err := <-r.ended
	if left := new(worker.StuckError); !errors.As(err, &left) || left.Handlers != 1 {
		t.Errorf("Run = %v, want a *StuckError for one handler", err)
	}
	<-stuck // and nothing is logged after it
	if !strings.Contains(log.String(), "TestAHandlerThatIgnoresItsContextIsStuck.func") || !strings.Contains(log.String(), "pool_test.go:") {
		t.Errorf("the log does not show where the handler is: %s", log.String())
	}
	if e := r.event(worker.EventRetry); e.Attempt != 1 {
		t.Errorf("event %+v, want the first attempt failed", e)
	}
	if j := r.job(); j.State != "delayed" || j.Releases != 1 {
		t.Errorf("the job is %+v, want it released once", j)
	}
	close(release)
	if got := <-gone; got != tube {
		t.Errorf("the job's tube is %q by then, want %q", got, tube)
	}
}

func TestMaxRuntimeEndsAnExecution(t *testing.T) {
	t.Parallel()
	started := make(chan context.Context, 1)
	r := start(t, worker.Options{MaxRuntime: 50 * time.Millisecond}, map[string]job.HandlerFunc{"k": hold(started, nil)})
	r.enqueue(body("k", ""), time.Minute)
	if e := r.event(worker.EventRetry); !errors.Is(e.Err, context.DeadlineExceeded) || strings.Contains(e.Err.Error(), "\n") {
		t.Errorf("the attempt failed with %v, want the deadline", e.Err)
	}
	if deadline, ok := (<-started).Deadline(); !ok || time.Until(deadline) > time.Minute {
		t.Errorf("the context's deadline is %v, %v", deadline, ok)
	}
	r.end(nil)
}

func TestAJobLongerThanItsTTRIsKept(t *testing.T) {
	t.Parallel()
	started, release := make(chan context.Context, 10), make(chan struct{})
	r := start(t, worker.Options{}, map[string]job.HandlerFunc{"k": hold(started, release)})
	r.enqueue(body("k", ""), time.Second)
	ctx := <-started
	timer := time.NewTimer(2500 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C: // two and a half TTRs
	case <-ctx.Done():
		t.Errorf("the context ended: %v", context.Cause(ctx))
	}
	if j := r.job(); j.Timeouts != 0 || j.State != "reserved" {
		t.Errorf("the job is %+v, want it still reserved", j)
	}
	close(release)
	r.empty()
	r.end(nil)
	if len(started) != 0 {
		t.Error("the job was run twice")
	}
}

func TestALostLeaseCancelsAndIsNotSettled(t *testing.T) {
	t.Parallel()
	started := make(chan context.Context, 10)
	r := start(t, worker.Options{Threads: 1, ShutdownTimeout: 50 * time.Millisecond}, map[string]job.HandlerFunc{"k": hold(started, nil)})
	r.enqueue(body("k", ""), time.Second)
	ctx := <-started
	r.broker.Cut()
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), job.ErrLeaseLost) {
		t.Errorf("the context's cause is %v, want ErrLeaseLost", context.Cause(ctx))
	}
	if e := r.event(worker.EventLost); !errors.Is(e.Err, job.ErrLeaseLost) || e.Err.Error() == job.ErrLeaseLost.Error() {
		t.Errorf("the event's error is %v, want it to say why the lease was lost", e.Err)
	}
	<-started // it went back by itself, and is run again
	if j := r.job(); j.Releases != 0 || j.Buries != 0 {
		t.Errorf("the lost job was settled: %+v", j)
	}
	r.end(nil)
}

func TestAJobIsNotRunBesideItselfWhenItsLeaseIsLost(t *testing.T) {
	t.Parallel()
	started, release := make(chan context.Context, 10), make(chan struct{})
	r := start(t, worker.Options{Threads: 3}, map[string]job.HandlerFunc{
		"k": func(ctx context.Context, _ *job.Job) error { // takes its time to see that it is cancelled
			started <- ctx
			<-release
			return context.Cause(ctx)
		},
	})
	r.enqueue(body("k", ""), time.Hour)
	first := <-started
	timer := time.NewTimer(time.Second) // the lease is looked after by then, and touched next in 15 s
	defer timer.Stop()
	<-timer.C
	r.broker.Cut()
	select {
	case <-first.Done():
	case <-time.After(5 * time.Second):
		t.Error("the handler is not told that its connection is closed")
	}
	r.until("it is reserved again", func() bool { return r.job().State == "reserved" && r.job().Reserves > 1 && r.pool.Stats().Busy == 2 })
	if len(started) != 0 {
		t.Error("it is run again while the first handler still runs")
	}
	release <- struct{}{}
	<-started
	close(release)
	r.empty()
	r.end(nil)
}

func TestAJobThatWasDoneIsDeletedThoughItsConnectionBroke(t *testing.T) {
	t.Parallel()
	var runs sync.Map
	started, release := make(chan struct{}, 10), make(chan struct{})
	r := start(t, worker.Options{Threads: 1}, map[string]job.HandlerFunc{
		"k": func(_ context.Context, j *job.Job) error {
			n, _ := runs.LoadOrStore(j.ID, new(int))
			*n.(*int)++
			started <- struct{}{}
			<-release
			return nil
		},
	})
	r.enqueue(body("k", ""), time.Minute)
	<-started
	r.broker.Cut()
	close(release)
	r.empty()
	r.end(nil)
	if n, _ := runs.Load("id-k"); *n.(*int) != 1 {
		t.Errorf("the job ran %d times, want once", *n.(*int))
	}
}

func TestQuietStopsReservingAndKeepsRunning(t *testing.T) {
	t.Parallel()
	started, release := make(chan context.Context, 10), make(chan struct{})
	r := start(t, worker.Options{ReserveTimeout: time.Hour}, map[string]job.HandlerFunc{"k": hold(started, release)})
	r.enqueue(body("k", ""), time.Minute)
	<-started
	r.pool.Quiet()
	late := r.enqueue(body("k", ""), time.Minute)
	close(release)
	r.until("the running job is done", func() bool { return r.pool.Stats().Done == 1 })
	if j := r.job(); j.ID != late || j.State != "ready" || !r.pool.Stats().Quiet {
		t.Errorf("left is %+v, stats %+v; want job %d ready and the pool quiet", j, r.pool.Stats(), late)
	}
	select {
	case err := <-r.ended:
		t.Errorf("a quiet pool has ended: %v", err)
	default:
	}
	r.end(nil)
}

func TestBystandersThatPanicChangeNothing(t *testing.T) {
	t.Parallel()
	r := start(t, worker.Options{
		Observer: worker.ObserverFunc(func(worker.Event) { panic("observer") }), Board: panicBoard{},
	}, map[string]job.HandlerFunc{"k": returning(nil), "f": returning(errors.New("no luck"))})
	r.enqueue(body("k", ""), time.Minute)
	r.enqueue(body("f", ""), time.Minute)
	r.until("both are settled", func() bool { s := r.pool.Stats(); return s.Done == 1 && s.Retried >= 1 })
	r.end(nil)
}

type panicBoard struct{}

func (panicBoard) Start(int, uint64, uint64, string, time.Time) { panic("board") }
func (panicBoard) Finish(int)                                   { panic("board") }

func TestConsumersComeBackAfterAnOutage(t *testing.T) {
	t.Parallel()
	r := start(t, worker.Options{Threads: 5}, map[string]job.HandlerFunc{"k": returning(nil)})
	for range 3 {
		r.until("all are connected", func() bool { return r.pool.Stats().Connected == 5 })
		r.broker.Fail(broker.Faults{Refuse: true})
		r.broker.Cut()
		r.until("all have noticed", func() bool { return r.pool.Stats().Connected == 0 })
		r.broker.Fail(broker.Faults{})
	}
	r.enqueue(body("k", ""), time.Minute)
	r.empty()
	r.end(nil)
}

func TestOptionsAreCheckedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := worker.New(worker.Options{Threads: -1, Limit: -1, MaxRuntime: -1, Retry: retry.Policy{MaxRetries: -1}})
	for _, want := range []string{"Registry", "Tubes", "Threads", "Limit", "MaxRuntime", "Options.Retry"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New = %v, want it to name %s", err, want)
		}
	}
}

func TestRunRefusesToRunTwice(t *testing.T) {
	t.Parallel()
	r := start(t, worker.Options{}, nil)
	r.until("it runs", func() bool { return r.pool.Stats().Connected > 0 })
	if err := r.pool.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "called before") {
		t.Errorf("Run = %v, want it refused", err)
	}
	r.end(nil)
}

func TestTheTubeOfAJobIsTheOneOfItsQueue(t *testing.T) {
	t.Parallel()
	tubes := make(chan string, 1)
	registry := job.NewRegistry()
	registry.Handle("k", job.HandlerFunc(func(_ context.Context, j *job.Job) error {
		tubes <- j.Tube
		return nil
	}))
	b := brokertest.Start(t)
	_, stop := work(t, worker.Options{
		Beanstalk: beanstalk.Options{URL: b.URL()}, Registry: registry, Logger: slog.New(slog.DiscardHandler),
	}, "postburner.test.high.mailers", "postburner.test.mailers", "postburner.test.low.mailers")
	conn, err := beanstalk.New(beanstalk.Options{URL: b.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for queue, want := range map[string]string{
		"mailers": "postburner.test.mailers", "high.mailers": "postburner.test.high.mailers", "": "", "ilers": "",
	} {
		text := body("k", fmt.Sprintf(`,"queue_name":%q`, queue))
		if _, err := conn.Put(t.Context(), beanstalk.Put{Tube: "postburner.test.low.mailers", Body: []byte(text), TTR: time.Minute}); err != nil {
			t.Fatal(err)
		}
		if got := <-tubes; got != want {
			t.Errorf("queue %q: tube %q, want %q", queue, got, want)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestEventsCarryWhatIsKnown(t *testing.T) {
	t.Parallel()
	r := start(t, worker.Options{}, map[string]job.HandlerFunc{"k": returning(errors.New("no luck"))})
	r.enqueue(body("k", ""), time.Minute)
	e := r.event(worker.EventRetry)
	if e.Kind != "k" || e.JobID != "id-k" || e.Tube != tube || e.Attempt != 1 || e.Wait < time.Second/2 {
		t.Errorf("event %+v", e)
	}
	text, err := json.Marshal([]any{r.event(worker.EventPerformStart).Type, r.event(worker.EventPerform).Duration > 0})
	if err != nil || string(text) != `["perform_start",true]` {
		t.Errorf("perform events: %s, %v", text, err)
	}
	r.end(nil)
}
