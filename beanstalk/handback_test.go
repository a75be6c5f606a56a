package beanstalk_test

import (
	"testing"
	"time"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/broker/brokertest"
)

func TestHandBackLeavesTheJobAsItWasButForTheCounters(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, server brokertest.Server) {
		ctx := t.Context()
		conn, other := open(t, server, "mail"), open(t, server, "mail")
		id := putWith(t, conn, beanstalk.Put{Tube: "mail", Body: []byte("x"), Priority: 7, TTR: time.Hour})
		job := reserve(t, conn)
		want(t, "hand back", conn.HandBack(ctx, job, 7), nil)
		stats, err := other.StatsJob(ctx, id)
		want(t, "stats-job", err, nil)
		if stats.State != "ready" || stats.Priority != 7 || stats.Reserves != 1 || stats.Releases != 0 || stats.Buries != 1 || stats.Kicks != 1 {
			t.Errorf("the job is %+v, want it ready, with nothing counted but its burial and kick", stats)
		}
		want(t, "a second time", conn.HandBack(ctx, job, 7), beanstalk.ErrNotFound)
		if !conn.Connected() {
			t.Error("the refusal cost the connection")
		}
		taken := reserve(t, other)
		want(t, "of another's job", conn.HandBack(ctx, job, 7), beanstalk.ErrNotFound)
		want(t, "delete", other.Delete(ctx, taken), nil)

		put(t, conn, "mail", "y")
		job = reserve(t, conn)
		conn.Disconnect()
		want(t, "after the connection is gone", conn.HandBack(ctx, job, 0), beanstalk.ErrJobLost)
	})
}
