package worker_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/broker"
	"github.com/postburner/postburner/broker/brokertest"
	"github.com/postburner/postburner/job"
	"github.com/postburner/postburner/worker"
)

// keyBoard tells the key of each job that starts.
type keyBoard struct{ keys chan uint64 }

func (b keyBoard) Start(_ int, _, key uint64, _ string, _ time.Time) { b.keys <- key }
func (b keyBoard) Finish(int)                                        {}

// keyOf returns the key that a pool uses for a body.
func keyOf(t *testing.T, text string) uint64 {
	t.Helper()
	board := keyBoard{make(chan uint64, 1)}
	r := start(t, worker.Options{Board: board}, map[string]job.HandlerFunc{"k": returning(nil)})
	r.enqueue(text, time.Minute)
	defer r.end(nil)
	return <-board.keys
}

func TestASuspectRunsAlone(t *testing.T) {
	t.Parallel()
	suspect := strings.Replace(body("k", ""), "id-k", "suspect", 1)
	key := keyOf(t, suspect)
	started, release := make(chan string, 10), make(chan struct{})
	r := start(t, worker.Options{Threads: 3, PoisonDeaths: 3}, map[string]job.HandlerFunc{
		"k": func(ctx context.Context, j *job.Job) error {
			started <- j.ID
			<-release
			return nil
		},
	})
	next := func(want string) {
		t.Helper()
		if got := <-started; got != want {
			t.Errorf("job %s starts, want %s", got, want)
		}
	}
	r.enqueue(body("k", ""), time.Minute)
	next("id-k")
	id := r.enqueue(suspect, time.Minute)
	next("suspect") // nothing is known against it yet
	release <- struct{}{}
	release <- struct{}{}
	r.empty()

	id++                                                                     // the broker counts
	r.pool.Suspect(worker.Suspect{BeanstalkID: id + 1, Key: key, Deaths: 3}) // never alone, so not proven
	r.enqueue(body("k", ""), time.Minute)
	next("id-k")
	r.enqueue(suspect, time.Second)
	reserved := func(n int) func() bool {
		return func() bool {
			found := 0
			for _, j := range r.broker.Jobs(tube) {
				if j.State == "reserved" {
					found++
				}
			}
			return found == n
		}
	}
	r.until("the suspect is reserved, and waits", func() bool { return reserved(2)() && r.pool.Stats().Isolating })
	r.enqueue(body("k", ""), time.Minute)
	timer := time.NewTimer(1500 * time.Millisecond) // longer than its TTR
	defer timer.Stop()
	<-timer.C
	if len(started) != 0 || !reserved(2)() {
		t.Errorf("%d more jobs have started beside the first; jobs %+v", len(started), r.broker.Jobs(tube))
	}
	release <- struct{}{}
	next("suspect")
	r.until("nothing runs beside the suspect", reserved(1)) // the other one is done, and deleted
	if busy := r.pool.Stats().Busy; busy != 1 {
		t.Errorf("%d consumers are busy while the suspect runs", busy)
	}
	release <- struct{}{}
	next("id-k")
	close(release)
	r.empty()
	r.end(nil)
}

func TestAStopHandsASuspectBackThatWaitsToRunAlone(t *testing.T) {
	t.Parallel()
	key := keyOf(t, body("k", ""))
	started, release := make(chan context.Context, 10), make(chan struct{})
	r := start(t, worker.Options{PoisonDeaths: 3}, map[string]job.HandlerFunc{"k": hold(started, release), "other": hold(started, release)})
	r.enqueue(body("other", ""), time.Minute)
	<-started
	r.pool.Suspect(worker.Suspect{BeanstalkID: 2, Key: key, Deaths: 2})
	r.enqueue(body("k", ""), time.Minute)
	r.until("both are reserved", func() bool {
		jobs := r.broker.Jobs(tube)
		return len(jobs) == 2 && jobs[0].State == "reserved" && jobs[1].State == "reserved" && r.pool.Stats().Isolating
	})
	r.stop()
	r.event(worker.EventInterrupted)
	close(release)
	r.end(nil)
	r.until("the server has seen the hang-up", func() bool { return r.job().State == "ready" })
	if j := r.job(); j.ID != 2 || j.State != "ready" || j.Releases != 0 || len(started) != 0 {
		t.Errorf("left is %+v, want the suspect ready", j)
	}
}

func TestAProvenPoisonIsBuriedUnrun(t *testing.T) {
	t.Parallel()
	key := keyOf(t, body("k", ""))
	r := start(t, worker.Options{PoisonDeaths: 3}, map[string]job.HandlerFunc{"k": returning(nil)})
	r.pool.Suspect(worker.Suspect{BeanstalkID: 1, Key: key, Deaths: 3, Alone: true}, worker.Suspect{BeanstalkID: 2, Key: key + 1, Deaths: 3, Alone: true})
	id := r.enqueue(body("k", ""), time.Minute)
	r.enqueue(body("k", ""), time.Minute) // has the id of a suspect, and is another job
	if e := r.event(worker.EventBury); e.BeanstalkID != id || !strings.Contains(e.Reason, "3 processes died") {
		t.Errorf("event %+v", e)
	}
	r.until("the other is done", func() bool { return len(r.broker.Jobs(tube)) == 1 })
	if j := r.job(); j.State != "buried" || j.Priority != 7 {
		t.Errorf("the job is %+v, want it buried with its priority", j)
	}
	r.end(nil)
	if s := r.pool.Stats(); s.Done != 1 || s.Buried != 1 {
		t.Errorf("stats %+v", s)
	}
}

func TestAVigilantConsumerTriesASuspectAloneAndBuriesItInTheEnd(t *testing.T) {
	t.Parallel()
	vigilant := worker.Options{Vigilant: true, PoisonReserves: 10, PoisonDeaths: 3}
	handBack := func(conn *beanstalk.Conn, j *beanstalk.Job, _ int) error { return conn.HandBack(t.Context(), j, 0) }
	release := func(conn *beanstalk.Conn, j *beanstalk.Job, _ int) error { return conn.Release(t.Context(), j, 0, 0) }
	die := func(conn *beanstalk.Conn, _ *beanstalk.Job, _ int) error {
		conn.Disconnect()
		return nil
	}
	// dieMarked is a worker that is a tenth time at it and knows.
	dieMarked := func(times int) func(*beanstalk.Conn, *beanstalk.Job, int) error {
		return func(conn *beanstalk.Conn, j *beanstalk.Job, round int) error {
			if round < times {
				if err := conn.Mark(t.Context(), j, 0); err != nil {
					return err
				}
			}
			conn.Disconnect()
			return nil
		}
	}
	for name, c := range map[string]struct {
		options worker.Options
		giveUp  func(conn *beanstalk.Conn, j *beanstalk.Job, round int) error
		buried  bool
		buries  int // when it runs
	}{
		"its processes died":         {vigilant, die, false, 1},
		"twice when it ran alone":    {vigilant, dieMarked(2), false, 3},
		"three times, so":            {vigilant, dieMarked(3), true, 0},
		"it was handed back":         {vigilant, handBack, false, 10},
		"it was released":            {vigilant, release, false, 0},
		"nobody is vigilant":         {worker.Options{PoisonReserves: 10, PoisonDeaths: 3}, dieMarked(3), false, 3},
		"no number makes it suspect": {worker.Options{Vigilant: true, PoisonDeaths: 3}, dieMarked(3), false, 3},
		"no number of deaths buries": {worker.Options{Vigilant: true, PoisonReserves: 10}, dieMarked(3), false, 3},
		"the number is not reached":  {worker.Options{Vigilant: true, PoisonReserves: 11, PoisonDeaths: 3}, dieMarked(3), false, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			started, release := make(chan context.Context, 1), make(chan struct{})
			o := c.options
			o.Threads = 1
			h := hold(started, release)
			r := start(t, o, map[string]job.HandlerFunc{"first": h, "k": h})
			r.enqueue(body("first", ""), time.Minute) // keeps the consumer busy
			<-started
			conn, err := beanstalk.New(beanstalk.Options{URL: r.broker.URL(), Tubes: []string{"elsewhere"}})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			id := r.enqueue(body("k", ""), time.Minute)
			second := func() broker.Job {
				jobs := r.broker.Jobs(tube)
				return jobs[len(jobs)-1]
			}
			for round := range 10 {
				j, err := conn.ReserveJob(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				if err := c.giveUp(conn, j, round); err != nil {
					t.Fatal(err)
				}
				r.until("the job is ready again", func() bool { return second().State == "ready" })
			}
			release <- struct{}{} // the consumer goes on
			if c.buried {
				if e := r.event(worker.EventBury); e.BeanstalkID != id || !strings.Contains(e.Reason, "run alone 3 times") {
					t.Errorf("event %+v", e)
				}
			} else {
				<-started
				if j := second(); j.Buries != c.buries || j.State != "reserved" {
					t.Errorf("while it runs the job is %+v, want %d burials", j, c.buries)
				}
				close(release)
				r.empty()
			}
			r.end(nil)
		})
	}
}

func TestAMarkedJobIsNotLeftBuriedByARestartOfTheServer(t *testing.T) {
	t.Parallel()
	server := brokertest.StartBeanstalkd(t, "-b", t.TempDir())
	conn, err := beanstalk.New(beanstalk.Options{URL: server.URL(), Tubes: []string{tube}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	id, err := conn.Put(t.Context(), beanstalk.Put{Tube: tube, Body: []byte(body("k", "")), TTR: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := conn.Reserve(t.Context(), 10*time.Second); err != nil {
			t.Fatal(err)
		}
		conn.Disconnect()
	}
	started := make(chan context.Context, 10)
	registry := job.NewRegistry()
	release := make(chan struct{})
	registry.Handle("k", hold(started, release))
	_, stop := work(t, worker.Options{
		Beanstalk: beanstalk.Options{URL: server.URL()}, Registry: registry, Logger: slog.New(slog.DiscardHandler),
		Vigilant: true, PoisonReserves: 2, PoisonDeaths: 3,
	}, tube)
	ctx := <-started
	stats, err := conn.StatsJob(t.Context(), id)
	if err != nil || stats.Buries != 1 {
		t.Errorf("the job is %+v, %v, want it marked", stats, err)
	}
	server.Kill()
	server.Restart()
	<-ctx.Done()
	<-started // it was kicked, and runs again
	close(release)
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestAFullServerDoesNotKeepAJobThatIsHandedBack(t *testing.T) {
	t.Parallel()
	started := make(chan context.Context, 1)
	r := start(t, worker.Options{ShutdownTimeout: 50 * time.Millisecond, PoisonReserves: 10, PoisonDeaths: 3}, map[string]job.HandlerFunc{"k": hold(started, nil)})
	r.enqueue(body("k", ""), time.Minute)
	<-started
	r.broker.Fail(broker.Faults{OutOfMemory: true})
	r.end(nil)
	r.until("the job is ready", func() bool { return r.job().State == "ready" })
	if j := r.job(); j.Buries != 0 || j.Releases != 0 {
		t.Errorf("the job is %+v, want nothing counted", j)
	}
}
