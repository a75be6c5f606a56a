package scheduler_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/broker"
	"github.com/postburner/postburner/broker/brokertest"
	"github.com/postburner/postburner/internal/testwait"
	"github.com/postburner/postburner/scheduler"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const tube = "postburner.test.scheduler"

// start runs a scheduler until the test ends, or stop is called.
func start(t *testing.T, url string, interval time.Duration, log *testwait.Log) (stop func()) {
	t.Helper()
	s, err := scheduler.New(scheduler.Options{
		Beanstalk: beanstalk.Options{URL: url}, Tube: tube, Interval: interval, Timeout: time.Second, Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run = %v, want nil after a stop", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// eventually waits until the tube holds what is wanted.
func eventually(t *testing.T, b *brokertest.Embedded, what string, condition func(jobs []broker.Job) bool) {
	t.Helper()
	testwait.Until(t, func() (bool, string) {
		jobs := b.Jobs(tube)
		return condition(jobs), fmt.Sprintf("%s; jobs %+v", what, jobs)
	})
}

func one(body string) func([]broker.Job) bool {
	return func(jobs []broker.Job) bool {
		return len(jobs) == 1 && jobs[0].State == "delayed" && strings.Contains(string(jobs[0].Body), body)
	}
}

// generationWhen waits until the tube holds one watchdog that fits, and returns the generation it had then.
func generationWhen(t *testing.T, b *brokertest.Embedded, what string, fits func(broker.Job) bool) (generation uint64) {
	t.Helper()
	eventually(t, b, what, func(jobs []broker.Job) bool {
		if len(jobs) != 1 || !fits(jobs[0]) {
			return false
		}
		generation = generationOf(t, jobs[0])
		return true
	})
	return generation
}

func generationOf(t *testing.T, j broker.Job) uint64 {
	t.Helper()
	var state struct{ Generation *uint64 }
	if err := json.Unmarshal(j.Body, &state); err != nil || state.Generation == nil {
		t.Fatalf("the watchdog %q has no generation: %v", j.Body, err)
	}
	return *state.Generation
}

func put(t *testing.T, url, body string, delay time.Duration) {
	t.Helper()
	c, err := beanstalk.New(beanstalk.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Put(t.Context(), beanstalk.Put{Tube: tube, Body: []byte(body), Priority: 100, Delay: delay, TTR: time.Minute}); err != nil {
		t.Fatal(err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		opts  scheduler.Options
		wants []string
	}{
		{scheduler.Options{Tube: "not ok", Interval: time.Millisecond, Timeout: -1}, []string{"Options.Tube", "Options.Interval is 1ms", "Options.Timeout is -1ns"}},
		{scheduler.Options{Tube: tube, Interval: -time.Minute, Timeout: 999 * time.Millisecond}, []string{"Options.Interval is -1m0s", "Options.Timeout is 999ms"}},
	} {
		_, err := scheduler.New(c.opts)
		for _, want := range c.wants {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("New(%+v) = %v, want it to say %q", c.opts, err, want)
			}
		}
	}
}

func TestRunIsRefusedTheSecondTime(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t)
	s, err := scheduler.New(scheduler.Options{Beanstalk: beanstalk.Options{URL: b.URL()}, Tube: tube})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ctx); err != nil {
		t.Errorf("Run = %v, want nil after a stop", err)
	}
	if err := s.Run(ctx); err == nil || !strings.Contains(err.Error(), "called before") {
		t.Errorf("the second Run = %v, want it refused", err)
	}
}

func TestAWatchdogIsArmedAndPutAnewWhenItIsDue(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t)
	start(t, b.URL(), time.Second, &testwait.Log{})
	eventually(t, b, "armed", one(`{"scheduler":true,"interval":1,"generation":1}`))
	eventually(t, b, "put anew", one(`"generation":3`))
}

func TestTheGemsWatchdogIsAnEmptyStateAndUnknownKeysStay(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t)
	put(t, b.URL(), `{"scheduler":true,"interval":300,"later":{"a":1}}`, 0)
	start(t, b.URL(), time.Hour, &testwait.Log{})
	eventually(t, b, "taken over", one(`{"scheduler":true,"interval":3600,"generation":1,"later":{"a":1}}`))
}

func TestABrokenStateStartsAfreshAndAForeignJobIsBuried(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, log string }{
		"no number":    {`{"scheduler":true,"generation":"many"}`, "its generation"},
		"no seconds":   {`{"scheduler":true,"interval":[]}`, "its interval"},
		"far too long": {`{"scheduler":true,"generation":5,"x":"` + strings.Repeat("x", 61_000) + `"}`, "at most 60000 are kept"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, log := brokertest.Start(t), &testwait.Log{}
			put(t, b.URL(), c.body, 0)
			start(t, b.URL(), time.Hour, log)
			eventually(t, b, "afresh", one(`{"scheduler":true,"interval":3600,"generation":1}`))
			if !log.Contains(c.log) {
				t.Errorf("the log does not say %q: %s", c.log, log.String())
			}
		})
	}
	for _, body := range []string{`{"job_class":"Stray"}`, "no JSON", `{"scheduler":false}`, ""} {
		b, log := brokertest.Start(t), &testwait.Log{}
		put(t, b.URL(), body, 0)
		start(t, b.URL(), time.Hour, log)
		eventually(t, b, "buried beside the watchdog", func(jobs []broker.Job) bool {
			return len(jobs) == 2 && jobs[0].State == "buried" && jobs[1].State == "delayed"
		})
		if !log.Contains("foreign job") {
			t.Errorf("the log does not say why %q was buried: %s", body, log.String())
		}
	}
}

func TestALoweredIntervalWakesTheSleeper(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t)
	put(t, b.URL(), `{"scheduler":true,"interval":9000,"generation":4}`, 9000*time.Second)
	start(t, b.URL(), time.Hour, &testwait.Log{})
	eventually(t, b, "woken", one(`{"scheduler":true,"interval":3600,"generation":5}`))
}

func TestAServerThatTakesNoJobsKeepsItsWatchdog(t *testing.T) {
	t.Parallel()
	b, log := brokertest.Start(t), &testwait.Log{}
	put(t, b.URL(), `{"scheduler":true,"interval":1,"generation":7}`, 0)
	b.Fail(broker.Faults{Draining: true})
	start(t, b.URL(), time.Second, log)
	if got := generationWhen(t, b, "released", func(j broker.Job) bool { return j.Releases >= 2 }); got != 7 {
		t.Errorf("while the server takes no jobs the watchdog is of generation %d, want 7", got)
	}
	b.Fail(broker.Faults{})
	// The first change is what counts: one that was lost and armed anew would come to 8 as well.
	if got := generationWhen(t, b, "put again", func(j broker.Job) bool { return generationOf(t, j) != 7 }); got < 8 {
		t.Errorf("the watchdog is of generation %d, want 8 or more: it was lost and armed anew", got)
	}
}

func TestDuplicatesMergeIntoTheLatest(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t)
	for _, generation := range []string{"3", "9", "1", "9", "2"} {
		put(t, b.URL(), `{"scheduler":true,"interval":300,"generation":`+generation+`}`, 5000*time.Second)
	}
	for range 4 {
		start(t, b.URL(), time.Hour, &testwait.Log{})
	}
	merged := func(j broker.Job) bool { return one(`"interval":3600`)([]broker.Job{j}) }
	if got := generationWhen(t, b, "merged", merged); got < 9 {
		t.Errorf("the watchdog is of generation %d, want the latest, 9, or one put after it", got)
	}
}

func TestAnOutageIsSurvived(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t)
	log := &testwait.Log{}
	// Its generation is far from 1, which is what one that is lost and armed anew would have.
	put(t, b.URL(), `{"scheduler":true,"interval":1,"generation":50}`, 0)
	stop := start(t, b.URL(), time.Second, log)
	before := generationWhen(t, b, "taken over", func(j broker.Job) bool { return generationOf(t, j) > 50 })
	b.Fail(broker.Faults{Refuse: true})
	b.Cut()
	eventually(t, b, "noticed", func([]broker.Job) bool { return log.Contains("turn failed") })
	b.Fail(broker.Faults{})
	after := generationWhen(t, b, "goes on", func(j broker.Job) bool { return generationOf(t, j) != before })
	if after < before {
		t.Errorf("the watchdog was of generation %d and is of %d: it was lost and armed anew", before, after)
	}
	stop()
	if jobs := b.Jobs(tube); len(jobs) != 1 {
		t.Errorf("after the stop there are %d watchdogs, want 1", len(jobs))
	}
}
