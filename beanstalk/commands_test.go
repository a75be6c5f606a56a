package beanstalk_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/broker/brokertest"
)

func TestJobGoesThroughItsLife(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, server brokertest.Server) {
		ctx := t.Context()
		conn, observer := open(t, server, "mail"), open(t, server)
		id := putWith(t, conn, beanstalk.Put{Tube: "mail", Body: []byte("hello\r\nthere"), Priority: 7, TTR: 90 * time.Second})

		peeked, err := conn.Peek(ctx, id)
		want(t, "peek", err, nil)
		if string(peeked) != "hello\r\nthere" {
			t.Fatalf("peeked %q", peeked)
		}
		job := reserve(t, conn)
		if job.ID != id || string(job.Body) != "hello\r\nthere" || job.Connection() != 1 {
			t.Fatalf("reserved %d %q on connection %d, want %d on 1", job.ID, job.Body, job.Connection(), id)
		}
		want(t, "touch", conn.Touch(ctx, job), nil)
		want(t, "release", conn.Release(ctx, job, 9, 1500*time.Millisecond), nil)

		stats, err := observer.StatsJob(ctx, id)
		want(t, "stats-job", err, nil)
		if stats.ID != id || stats.Tube != "mail" || stats.State != "delayed" || stats.Priority != 9 ||
			stats.TTR != 90*time.Second || stats.Delay != 2*time.Second || stats.Reserves != 1 || stats.Releases != 1 {
			t.Fatalf("after a release of 1.5 s: %+v", stats)
		}
		delayed, body, err := conn.PeekDelayed(ctx, "mail")
		want(t, "peek-delayed", err, nil)
		if delayed != id || string(body) != "hello\r\nthere" {
			t.Fatalf("peek-delayed answered %d %q", delayed, body)
		}
		want(t, "kick-job", conn.KickJob(ctx, id), nil)
		ready, _, err := conn.PeekReady(ctx, "mail")
		want(t, "peek-ready", err, nil)
		if ready != id {
			t.Fatalf("peek-ready answered %d, want %d", ready, id)
		}
		want(t, "bury", conn.Bury(ctx, reserve(t, conn), 3), nil)
		buried, _, err := conn.PeekBuried(ctx, "mail")
		want(t, "peek-buried", err, nil)
		if buried != id {
			t.Fatalf("peek-buried answered %d, want %d", buried, id)
		}
		n, err := conn.Kick(ctx, "mail", 10)
		want(t, "kick", err, nil)
		if n != 1 {
			t.Fatalf("kicked %d jobs, want 1", n)
		}
		job, err = conn.ReserveJob(ctx, id)
		want(t, "reserve-job", err, nil)
		want(t, "delete", conn.Delete(ctx, job), nil)
		if got := state(t, observer, id); got != "" {
			t.Fatalf("a deleted job is %s", got)
		}
	})
}

func TestErrorRepliesLeaveTheConnectionInStep(t *testing.T) {
	const nobody = 1 << 40
	for _, test := range []struct {
		name string
		want error
		run  func(t *testing.T, conn, other *beanstalk.Conn) error
	}{
		{"peek of no job", beanstalk.ErrNotFound, func(t *testing.T, conn, _ *beanstalk.Conn) error {
			_, err := conn.Peek(t.Context(), nobody)
			return err
		}},
		{"peek-ready of an empty tube", beanstalk.ErrNotFound, func(t *testing.T, conn, _ *beanstalk.Conn) error {
			_, _, err := conn.PeekReady(t.Context(), "empty")
			return err
		}},
		{"peek-delayed of an empty tube", beanstalk.ErrNotFound, func(t *testing.T, conn, _ *beanstalk.Conn) error {
			_, _, err := conn.PeekDelayed(t.Context(), "empty")
			return err
		}},
		{"peek-buried of an empty tube", beanstalk.ErrNotFound, func(t *testing.T, conn, _ *beanstalk.Conn) error {
			_, _, err := conn.PeekBuried(t.Context(), "empty")
			return err
		}},
		{"delete of no job", beanstalk.ErrNotFound, func(t *testing.T, conn, _ *beanstalk.Conn) error {
			return conn.DeleteID(t.Context(), nobody)
		}},
		{"delete of a job that another connection reserved", beanstalk.ErrNotFound, func(t *testing.T, conn, other *beanstalk.Conn) error {
			put(t, other, "mail", "x")
			return conn.DeleteID(t.Context(), reserve(t, other).ID)
		}},
		{"kick-job of no job", beanstalk.ErrNotFound, func(t *testing.T, conn, _ *beanstalk.Conn) error {
			return conn.KickJob(t.Context(), nobody)
		}},
		{"reserve-job of no job", beanstalk.ErrNotFound, func(t *testing.T, conn, _ *beanstalk.Conn) error {
			_, err := conn.ReserveJob(t.Context(), nobody)
			return err
		}},
		{"stats-job of no job", beanstalk.ErrNotFound, func(t *testing.T, conn, _ *beanstalk.Conn) error {
			_, err := conn.StatsJob(t.Context(), nobody)
			return err
		}},
		{"stats-tube of no tube", beanstalk.ErrNotFound, func(t *testing.T, conn, _ *beanstalk.Conn) error {
			_, err := conn.StatsTube(t.Context(), "nowhere")
			return err
		}},
		{"pause of no tube", beanstalk.ErrNotFound, func(t *testing.T, conn, _ *beanstalk.Conn) error {
			return conn.PauseTube(t.Context(), "nowhere", time.Second)
		}},
		{"touch of a job deleted before", beanstalk.ErrNotFound, func(t *testing.T, conn, _ *beanstalk.Conn) error {
			return conn.Touch(t.Context(), deleted(t, conn))
		}},
		{"bury of a job deleted before", beanstalk.ErrNotFound, func(t *testing.T, conn, _ *beanstalk.Conn) error {
			return conn.Bury(t.Context(), deleted(t, conn), 0)
		}},
		{"release of a job deleted before", beanstalk.ErrNotFound, func(t *testing.T, conn, _ *beanstalk.Conn) error {
			return conn.Release(t.Context(), deleted(t, conn), 0, 0)
		}},
		{"delete of a job deleted before", beanstalk.ErrNotFound, func(t *testing.T, conn, _ *beanstalk.Conn) error {
			return conn.Delete(t.Context(), deleted(t, conn))
		}},
		{"reserve that polls an empty tube", beanstalk.ErrTimeout, func(t *testing.T, conn, _ *beanstalk.Conn) error {
			_, err := conn.Reserve(t.Context(), 0)
			return err
		}},
		{"reserve that waits on an empty tube", beanstalk.ErrTimeout, func(t *testing.T, conn, _ *beanstalk.Conn) error {
			_, err := conn.Reserve(t.Context(), time.Millisecond)
			return err
		}},
		{"reserve while a held job nears its TTR", beanstalk.ErrDeadlineSoon, func(t *testing.T, conn, _ *beanstalk.Conn) error {
			putWith(t, conn, beanstalk.Put{Tube: "mail", TTR: time.Second})
			reserve(t, conn)
			_, err := conn.Reserve(t.Context(), 10*time.Second)
			return err
		}},
		{"put of a body over max-job-size", beanstalk.ErrJobTooBig, func(t *testing.T, conn, _ *beanstalk.Conn) error {
			_, err := conn.Put(t.Context(), beanstalk.Put{Tube: "mail", Body: make([]byte, 65536), TTR: time.Second})
			return err
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			brokertest.Each(t, func(t *testing.T, server brokertest.Server) {
				conn, other := open(t, server, "mail"), open(t, server, "mail")
				err := test.run(t, conn, other)
				want(t, test.name, err, test.want)
				failure, ok := errors.AsType[*beanstalk.Error](err)
				if !ok || failure.Op == "" || failure.Addr != server.Addr() {
					t.Errorf("got %#v, want an *Error with Op and Addr %s", err, server.Addr())
				}
				if !conn.Connected() {
					t.Error("the connection was dropped")
				}
				id := put(t, conn, "after", "in step")
				if body, err := conn.Peek(t.Context(), id); err != nil || string(body) != "in step" {
					t.Errorf("afterwards peek answers %q, %v", body, err)
				}
			})
		})
	}
}

// deleted returns a job that the connection reserved and deleted.
func deleted(t *testing.T, conn *beanstalk.Conn) *beanstalk.Job {
	t.Helper()
	put(t, conn, "mail", "x")
	job := reserve(t, conn)
	want(t, "delete", conn.Delete(t.Context(), job), nil)
	return job
}

func TestBodiesArriveAsTheyWere(t *testing.T) {
	bodies := map[string][]byte{
		"empty":          {},
		"CR LF only":     []byte("\r\n"),
		"like a reply":   []byte("NOT_FOUND\r\nRESERVED 1 2\r\n"),
		"every byte":     allBytes(),
		"the largest":    bytes.Repeat([]byte("ab"), 65535/2+1)[:65535],
		"over 16 KiB":    bytes.Repeat([]byte{0}, 17<<10),
		"a byte of zero": {0},
	}
	brokertest.Each(t, func(t *testing.T, server brokertest.Server) {
		conn := open(t, server, "mail")
		for name, body := range bodies {
			id := putWith(t, conn, beanstalk.Put{Tube: "mail", Body: body, TTR: time.Minute})
			job := reserve(t, conn)
			if job.ID != id || !bytes.Equal(job.Body, body) {
				t.Errorf("%s: reserved job %d of %d bytes, want %d of %d", name, job.ID, len(job.Body), id, len(body))
			}
			want(t, name, conn.Delete(t.Context(), job), nil)
		}
	})
}

func allBytes() []byte {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return all
}

func TestDurationsAreRoundedUp(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, server brokertest.Server) {
		conn := open(t, server)
		id := putWith(t, conn, beanstalk.Put{Tube: "default", Delay: time.Nanosecond, TTR: time.Minute + time.Nanosecond})
		stats, err := conn.StatsJob(t.Context(), id)
		want(t, "stats-job", err, nil)
		if stats.Delay != time.Second || stats.TTR != 61*time.Second {
			t.Errorf("delay %v, TTR %v; want 1s, 61s", stats.Delay, stats.TTR)
		}
		want(t, "pause-tube", conn.PauseTube(t.Context(), "default", time.Minute+time.Millisecond), nil)
		tube, err := conn.StatsTube(t.Context(), "default")
		want(t, "stats-tube", err, nil)
		if tube.Pause != 61*time.Second || tube.PauseLeft <= 0 || tube.PauseLeft > tube.Pause {
			t.Errorf("pause %v with %v left, want 61s", tube.Pause, tube.PauseLeft)
		}
		want(t, "end of the pause", conn.PauseTube(t.Context(), "default", 0), nil)
	})
}

func TestStatsCountWhatIsThere(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, server brokertest.Server) {
		ctx := t.Context()
		conn := open(t, server, "mail")
		put(t, conn, "mail", "buried")
		want(t, "bury", conn.Bury(ctx, reserve(t, conn), 5), nil)
		put(t, conn, "mail", "reserved")
		reserve(t, conn)
		put(t, conn, "mail", "ready")
		putWith(t, conn, beanstalk.Put{Tube: "mail", Priority: 2000, TTR: time.Minute})
		putWith(t, conn, beanstalk.Put{Tube: "mail", Delay: time.Hour, TTR: time.Minute})

		tube, err := conn.StatsTube(ctx, "mail")
		want(t, "stats-tube", err, nil)
		if tube.Name != "mail" || tube.Urgent != 1 || tube.Ready != 2 || tube.Reserved != 1 || tube.Delayed != 1 || tube.Buried != 1 ||
			tube.TotalJobs != 5 || tube.Jobs() != 5 || tube.Watching != 1 || tube.Using != 1 || tube.Pause != 0 {
			t.Errorf("stats-tube: %+v", tube)
		}
		all, err := conn.Stats(ctx)
		want(t, "stats", err, nil)
		if all.ID == "" || all.Version == "" || strings.Contains(all.Version, `"`) || all.MaxJobSize != 65535 || all.Draining ||
			all.Ready != 2 || all.Reserved != 1 || all.Delayed != 1 || all.Buried != 1 || all.TotalJobs != 5 ||
			all.Connections != 1 || all.Workers != 1 || all.Producers != 1 || all.Raw["current-jobs-ready"] != "2" {
			t.Errorf("stats: %+v", all)
		}
		tubes, err := conn.ListTubes(ctx)
		want(t, "list-tubes", err, nil)
		slices.Sort(tubes)
		if !slices.Equal(tubes, []string{"default", "mail"}) {
			t.Errorf("list-tubes: %q", tubes)
		}
	})
}
