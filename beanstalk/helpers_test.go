package beanstalk_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/broker/brokertest"
)

// noWait redials at once, so that no test depends on the length of a wait.
func noWait(ctx context.Context, _ int, _ error) error { return context.Cause(ctx) }

// open returns a Conn to the server that watches the tubes.
func open(t testing.TB, server brokertest.Server, tubes ...string) *beanstalk.Conn {
	t.Helper()
	return start(t, beanstalk.Options{URL: server.URL(), Tubes: tubes, Redial: noWait})
}

func start(t testing.TB, opts beanstalk.Options) *beanstalk.Conn {
	t.Helper()
	conn, err := beanstalk.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // always nil
	return conn
}

// want fails the test unless err is target; a nil target wants success.
func want(t testing.TB, what string, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("%s: got error %v, want %v", what, err, target)
	}
}

// put puts a job with a TTR that no test reaches.
func put(t testing.TB, conn *beanstalk.Conn, tube, body string) uint64 {
	t.Helper()
	return putWith(t, conn, beanstalk.Put{Tube: tube, Body: []byte(body), TTR: time.Hour})
}

func putWith(t testing.TB, conn *beanstalk.Conn, p beanstalk.Put) uint64 {
	t.Helper()
	id, err := conn.Put(t.Context(), p)
	want(t, "put", err, nil)
	return id
}

func reserve(t testing.TB, conn *beanstalk.Conn) *beanstalk.Job {
	t.Helper()
	job, err := conn.Reserve(t.Context(), 10*time.Second)
	want(t, "reserve", err, nil)
	return job
}

// state asks on another connection in which state a job is; "" if there is none.
func state(t testing.TB, conn *beanstalk.Conn, id uint64) string {
	t.Helper()
	stats, err := conn.StatsJob(t.Context(), id)
	if errors.Is(err, beanstalk.ErrNotFound) {
		return ""
	}
	want(t, "stats-job", err, nil)
	return stats.State
}

// eventually polls until the condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); !holds(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("still not after 30 s: %s", what)
		}
	}
}

// waiting waits until a connection waits in a reserve on the tube.
func waiting(t testing.TB, observer *beanstalk.Conn, tube string) {
	t.Helper()
	eventually(t, "a reserve waits on "+tube, func() bool {
		stats, err := observer.StatsTube(context.Background(), tube)
		return err == nil && stats.Waiting > 0
	})
}
