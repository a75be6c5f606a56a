package beanstalk_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/broker/brokertest"
)

func TestInterruptEndsAReserveThatWaits(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, server brokertest.Server) {
		conn, other := open(t, server, "mail"), open(t, server)
		failed := make(chan error)
		go func() {
			_, err := conn.Reserve(t.Context(), time.Hour)
			failed <- err
		}()
		waiting(t, other, "mail")
		conn.Interrupt()
		want(t, "the reserve that waited", <-failed, beanstalk.ErrInterrupted)
		_, err := conn.Reserve(t.Context(), time.Hour)
		want(t, "the next reserve", err, beanstalk.ErrInterrupted)
		put(t, conn, "mail", "x") // other commands go on
		conn.Resume()
		reserve(t, conn)
	})
}

func TestInterruptLeavesAReservedJobAlone(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, server brokertest.Server) {
		conn := open(t, server, "mail")
		put(t, conn, "mail", "x")
		job := reserve(t, conn)
		conn.Interrupt()
		want(t, "touch", conn.Touch(t.Context(), job), nil)
		next, deleted, err := conn.DeleteAndReserve(t.Context(), job, time.Hour)
		want(t, "the delete", deleted, nil)
		want(t, "the reserve behind it", err, beanstalk.ErrInterrupted)
		if next != nil {
			t.Errorf("got job %d", next.ID)
		}
	})
}

func TestInterruptDuringDeleteAndReserveKeepsTheDelete(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, server brokertest.Server) {
		conn, other := open(t, server, "mail"), open(t, server)
		id := put(t, conn, "mail", "x")
		job := reserve(t, conn)
		type outcome struct{ deleted, err error }
		result := make(chan outcome)
		go func() {
			_, deleted, err := conn.DeleteAndReserve(t.Context(), job, time.Hour)
			result <- outcome{deleted, err}
		}()
		waiting(t, other, "mail")
		conn.Interrupt()
		got := <-result
		want(t, "the delete", got.deleted, nil)
		want(t, "the reserve behind it", got.err, beanstalk.ErrInterrupted)
		if got := state(t, other, id); got != "" {
			t.Errorf("the job is %s, want it deleted", got)
		}
	})
}

func TestInterruptEndsTheDialOfAReserve(t *testing.T) {
	t.Parallel()
	waits := make(chan struct{})
	conn := start(t, beanstalk.Options{
		URL: "beanstalk://127.0.0.1:1", // nothing listens there
		Redial: func(ctx context.Context, _ int, _ error) error {
			close(waits)
			<-ctx.Done()
			return context.Cause(ctx)
		},
	})
	failed := make(chan error)
	go func() {
		_, err := conn.Reserve(t.Context(), time.Hour)
		failed <- err
	}()
	<-waits
	conn.Interrupt()
	want(t, "the reserve", <-failed, beanstalk.ErrInterrupted)
}

// A job that the server hands over in the instant of an Interrupt is either returned or ready again.
func TestInterruptLosesNoJobThatIsOnItsWay(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, server brokertest.Server) {
		other := open(t, server, "mail")
		returned := 0
		for round := range 200 {
			conn := open(t, server, "mail")
			type outcome struct {
				job *beanstalk.Job
				err error
			}
			result := make(chan outcome)
			go func() {
				job, err := conn.Reserve(t.Context(), time.Hour)
				result <- outcome{job, err}
			}()
			if round%2 == 0 {
				waiting(t, other, "mail")
			}
			id := make(chan uint64, 1)
			go func() { id <- put(t, other, "mail", "x") }()
			conn.Interrupt()
			got := <-result
			switch {
			case got.err == nil:
				returned++
				want(t, "delete", conn.Delete(t.Context(), got.job), nil)
				<-id
			case errors.Is(got.err, beanstalk.ErrInterrupted):
				<-id
				want(t, "delete", other.Delete(t.Context(), reserve(t, other)), nil)
			default:
				t.Fatalf("reserve: %v", got.err)
			}
			conn.Close()
		}
		t.Logf("%d of 200 jobs were returned", returned)
	})
}

func TestDisconnectGivesAllHeldJobsBack(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, server brokertest.Server) {
		conn, other := open(t, server, "mail"), open(t, server)
		ids := []uint64{put(t, conn, "mail", "x"), put(t, conn, "mail", "y")}
		reserve(t, conn)
		reserve(t, conn)
		conn.Disconnect()
		for _, id := range ids {
			eventually(t, "the job is ready", func() bool { return state(t, other, id) == "ready" })
		}
		reserve(t, conn) // dials anew by itself
	})
}
