package beanstalk_test

import (
	"testing"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/broker/brokertest"
)

func TestHoldsSeesThatTheServerHasHungUp(t *testing.T) {
	b := brokertest.Start(t)
	conn := open(t, b, "mail")
	put(t, conn, "mail", "x")
	job := reserve(t, conn)
	if !conn.Holds(job) {
		t.Error("a job that was just reserved is not held")
	}
	b.Cut()
	eventually(t, "the hang-up is seen", func() bool { return !conn.Holds(job) })
	eventually(t, "it has dialled again", func() bool {
		_, err := conn.Stats(t.Context())
		return err == nil
	})
	put(t, conn, "mail", "y")
	other := reserve(t, conn)
	if conn.Holds(job) || !conn.Holds(other) {
		t.Error("the job of the old connection is held, or that of the new one is not")
	}
	conn.Disconnect()
	if conn.Holds(other) {
		t.Error("a job is held after Disconnect")
	}
}

func TestStatsHeldAsksOnlyOverTheJobsOwnConnection(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, server brokertest.Server) {
		conn := open(t, server, "mail")
		id := put(t, conn, "mail", "x")
		job := reserve(t, conn)
		stats, err := conn.StatsHeld(t.Context(), job)
		want(t, "stats", err, nil)
		if stats.ID != id || stats.State != "reserved" || stats.Reserves != 1 {
			t.Errorf("stats %+v", stats)
		}
		conn.Disconnect()
		_, err = conn.StatsHeld(t.Context(), job)
		want(t, "after the connection is gone", err, beanstalk.ErrJobLost)
		if conn.Connected() {
			t.Error("it has dialled")
		}
	})
}
