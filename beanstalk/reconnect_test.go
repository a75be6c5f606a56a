package beanstalk_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/broker/brokertest"
)

func TestAConnComesBackAfterEachRestartAndWatchesItsTubesAgain(t *testing.T) {
	server := brokertest.StartBeanstalkd(t, "-b", t.TempDir())
	conn := open(t, server, "one", "two")
	for round := range 3 {
		put(t, conn, "default", "not for this one")
		for _, tube := range []string{"one", "two"} {
			id := put(t, conn, tube, "x")
			if job := reserve(t, conn); job.ID != id || job.Connection() != uint64(round+1) {
				t.Errorf("round %d: reserved job %d over connection %d, want %d", round, job.ID, job.Connection(), id)
			} else {
				want(t, "delete", conn.Delete(t.Context(), job), nil)
			}
		}
		stats, err := conn.StatsTube(t.Context(), "default")
		want(t, "stats-tube", err, nil)
		if stats.Watching != 0 {
			t.Errorf("round %d: %d connections watch default, want none", round, stats.Watching)
		}
		server.Kill()
		server.Restart()
		eventually(t, "the loss is seen", func() bool { // the command on which it is seen fails
			_, err := conn.ListTubes(context.Background())
			return err == nil
		})
	}
}

func TestRedialIsToldOfEachFailureInARow(t *testing.T) {
	t.Parallel()
	var counts []int
	give := errors.New("enough")
	refuse := errors.New("refused")
	conn := start(t, beanstalk.Options{
		URL:  "beanstalk://nowhere",
		Dial: func(context.Context) (net.Conn, error) { return nil, refuse },
		Redial: func(_ context.Context, failures int, err error) error {
			counts = append(counts, failures)
			if !errors.Is(err, refuse) || !strings.Contains(err.Error(), "dial beanstalkd at") {
				t.Errorf("Redial is told %v, want how the dial failed", err)
			}
			if failures == 3 {
				return give
			}
			return nil
		},
	})
	_, err := conn.ListTubes(t.Context())
	want(t, "list-tubes", err, give)
	want(t, "list-tubes", err, beanstalk.ErrNotSent)
	if !slices.Equal(counts, []int{1, 2, 3}) {
		t.Errorf("failures %v, want 1, 2, 3", counts)
	}
}

func TestASuccessStartsTheCountOfFailuresAnew(t *testing.T) {
	t.Parallel()
	var counts []int
	lost := script{{"list-tubes", "OK 4\r\n---\n\r\n"}, {"list-tubes", "EOF"}}
	conn := scripted(t, beanstalk.Options{Redial: func(_ context.Context, failures int, _ error) error {
		counts = append(counts, failures)
		return nil
	}}, lost, lost)
	for range 2 {
		_, err := conn.ListTubes(t.Context())
		want(t, "the first", err, nil)
		_, err = conn.ListTubes(t.Context())
		want(t, "the second", err, beanstalk.ErrUnknownOutcome)
	}
	if !slices.Equal(counts, []int{1}) {
		t.Errorf("failures %v, want the one between the connections", counts)
	}
}

func TestTheWaitBetweenDialsDoublesUpToHalfAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var dials []time.Time
		done := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		conn, err := beanstalk.New(beanstalk.Options{Dial: func(context.Context) (net.Conn, error) {
			dials = append(dials, time.Now())
			if len(dials) == 12 {
				cancel()
			}
			return nil, errors.New("refused")
		}})
		want(t, "new", err, nil)
		go func() {
			defer close(done)
			_, err := conn.ListTubes(ctx)
			want(t, "list-tubes", err, context.Canceled)
		}()
		<-done
		base := 100 * time.Millisecond
		for i := range len(dials) - 1 {
			wait := dials[i+1].Sub(dials[i])
			if wait < base*8/10 || wait > base*12/10 {
				t.Errorf("wait %d is %v, want %v ± 20 %%", i+1, wait, base)
			}
			base = min(2*base, 30*time.Second)
		}
	})
}

func TestJobsOfALostConnectionAreLost(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, server brokertest.Server) {
		ctx := t.Context()
		conn, other := open(t, server, "mail"), open(t, server, "mail")
		id := put(t, conn, "mail", "x")
		job := reserve(t, conn)
		conn.Disconnect()
		taken := reserve(t, other) // it is another's by now
		if taken.ID != id {
			t.Fatalf("reserved %d, want %d", taken.ID, id)
		}
		want(t, "touch", conn.Touch(ctx, job), beanstalk.ErrJobLost)
		want(t, "release", conn.Release(ctx, job, 0, 0), beanstalk.ErrJobLost)
		want(t, "bury", conn.Bury(ctx, job, 0), beanstalk.ErrJobLost)
		want(t, "delete", conn.Delete(ctx, job), beanstalk.ErrJobLost)
		_, deleted, err := conn.DeleteAndReserve(ctx, job, 0)
		want(t, "delete with the next reserve", deleted, beanstalk.ErrJobLost)
		want(t, "the reserve with it", err, beanstalk.ErrNotSent)
		put(t, conn, "mail", "y") // a new connection, and still not the job's
		want(t, "touch over the next connection", conn.Touch(ctx, job), beanstalk.ErrJobLost)
		if got := state(t, other, id); got != "reserved" {
			t.Errorf("the job is %s, want it untouched", got)
		}
		stats, err := other.StatsJob(ctx, id)
		want(t, "stats-job", err, nil)
		if stats.Releases != 0 || stats.Timeouts != 0 {
			t.Errorf("the job is %+v, want nothing counted", stats)
		}
	})
}

func TestASilentServerIsNoticedAndLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for op, c := range map[string]struct {
			limit time.Duration
			run   func(conn *beanstalk.Conn) error
		}{
			"reserve": {13 * time.Second, func(conn *beanstalk.Conn) error { _, err := conn.Reserve(t.Context(), 3*time.Second); return err }},
			"put": {10 * time.Second, func(conn *beanstalk.Conn) error {
				_, err := conn.Put(t.Context(), beanstalk.Put{Tube: "default", TTR: time.Second})
				return err
			}},
			"stats": {10 * time.Second, func(conn *beanstalk.Conn) error { _, err := conn.Stats(t.Context()); return err }},
		} {
			conn := scripted(t, beanstalk.Options{}, script{})
			from := time.Now()
			err := c.run(conn)
			want(t, op, err, beanstalk.ErrUnknownOutcome)
			if took := time.Since(from); took != c.limit {
				t.Errorf("%s: noticed after %v, want %v", op, took, c.limit)
			}
			if conn.Connected() {
				t.Errorf("%s: the connection is kept", op)
			}
			conn.Close()
		}
	})
}

func TestADialThatHangsEndsAtItsTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		conn := start(t, beanstalk.Options{
			DialTimeout: 7 * time.Second,
			Dial: func(ctx context.Context) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
			Redial: func(_ context.Context, _ int, err error) error { return err },
		})
		from := time.Now()
		_, err := conn.Stats(t.Context())
		want(t, "stats", err, context.DeadlineExceeded)
		if took := time.Since(from); took != 7*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestCloseIsForGood(t *testing.T) {
	b := brokertest.Start(t)
	conn := open(t, b, "mail")
	put(t, conn, "mail", "x")
	job := reserve(t, conn)
	failed := make(chan error)
	go func() {
		_, err := conn.Reserve(t.Context(), time.Hour)
		failed <- err
	}()
	waiting(t, open(t, b), "mail")
	want(t, "close", conn.Close(), nil)
	want(t, "the reserve that waited", <-failed, beanstalk.ErrClosed)
	_, err := conn.Stats(t.Context())
	want(t, "stats", err, beanstalk.ErrClosed)
	want(t, "delete", conn.Delete(t.Context(), job), beanstalk.ErrJobLost)
	want(t, "close again", conn.Close(), nil)

	var dialled atomic.Bool
	dialling := start(t, beanstalk.Options{Dial: func(ctx context.Context) (net.Conn, error) {
		dialled.Store(true)
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	go func() {
		_, err := dialling.Stats(t.Context())
		failed <- err
	}()
	eventually(t, "it dials", dialled.Load)
	want(t, "close", dialling.Close(), nil)
	want(t, "the dial", <-failed, beanstalk.ErrClosed)
}
