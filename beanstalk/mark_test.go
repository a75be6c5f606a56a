package beanstalk_test

import (
	"testing"
	"time"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/broker/brokertest"
)

func TestMarkLeavesABurialBehindOnAHeldJob(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, server brokertest.Server) {
		ctx := t.Context()
		conn, other := open(t, server, "mail"), open(t, server, "mail")
		id := putWith(t, conn, beanstalk.Put{Tube: "mail", Body: []byte("hello"), Priority: 7, TTR: time.Hour})
		job := reserve(t, conn)
		want(t, "mark", conn.Mark(ctx, job, 7), nil)
		stats, err := other.StatsJob(ctx, id)
		want(t, "stats-job", err, nil)
		if stats.State != "reserved" || stats.Priority != 7 || stats.Reserves != 2 || stats.Buries != 1 || stats.Kicks != 0 {
			t.Errorf("the job is %+v, want it reserved with one burial", stats)
		}
		want(t, "delete", conn.Delete(ctx, job), nil)
		want(t, "of a job that is gone", conn.Mark(ctx, job, 7), beanstalk.ErrNotFound)
		if !conn.Connected() {
			t.Error("the refusal cost the connection")
		}
	})
}
