package beanstalk_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/broker/brokertest"
)

func TestDeleteAndReserveAnswersForEachOfTheTwo(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name         string
		answer       string // to both commands; the server hangs up behind it
		deleted, err error
		next         uint64
	}{
		{"both succeed", "DELETED\r\nRESERVED 2 1\r\ny\r\n", nil, nil, 2},
		{"the delete is refused", "NOT_FOUND\r\nRESERVED 2 1\r\ny\r\n", beanstalk.ErrNotFound, nil, 2},
		{"the reserve is refused", "DELETED\r\nDEADLINE_SOON\r\n", nil, beanstalk.ErrDeadlineSoon, 0},
		{"both are refused", "NOT_FOUND\r\nTIMED_OUT\r\n", beanstalk.ErrNotFound, beanstalk.ErrTimeout, 0},
		{"no reply", "", beanstalk.ErrUnknownOutcome, beanstalk.ErrUnknownOutcome, 0},
		{"no reply to the reserve", "DELETED\r\n", nil, beanstalk.ErrUnknownOutcome, 0},
		{"half a reply to the reserve", "DELETED\r\nRESERVED 2 1\r\n", nil, beanstalk.ErrUnknownOutcome, 0},
		{"a reply to neither", "INSERTED 1\r\n", beanstalk.ErrUnknownOutcome, beanstalk.ErrUnknownOutcome, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			conn := scripted(t, beanstalk.Options{}, script{
				{"reserve-with-timeout 9", "RESERVED 1 1\r\nx\r\n"},
				{"delete 1", ""}, {"reserve-with-timeout 9", test.answer}, {"", "EOF"},
			})
			job, err := conn.Reserve(t.Context(), 9*time.Second)
			want(t, "reserve", err, nil)
			next, deleted, err := conn.DeleteAndReserve(t.Context(), job, 9*time.Second)
			want(t, "the delete", deleted, test.deleted)
			want(t, "the reserve behind it", err, test.err)
			if (next != nil) != (test.next != 0) || next != nil && (next.ID != test.next || string(next.Body) != "y") {
				t.Errorf("got job %+v, want job %d", next, test.next)
			}
		})
	}
}

// signalling calls sent after each write.
type signalling struct {
	net.Conn
	sent func(p []byte)
}

func (s signalling) Write(p []byte) (int, error) {
	n, err := s.Conn.Write(p)
	s.sent(p)
	return n, err
}

// The delete's reply is awaited, and the job that the server has for the reserve behind it goes back.
func TestAnInterruptBeforeTheReplyToTheDelete(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, server brokertest.Server) {
		other := open(t, server, "mail")
		var conn *beanstalk.Conn
		conn = start(t, beanstalk.Options{
			Tubes: []string{"mail"},
			Dial: func(context.Context) (net.Conn, error) {
				c, err := net.Dial("tcp", server.Addr())
				return signalling{c, func(p []byte) {
					if bytes.HasPrefix(p, []byte("delete")) {
						conn.Interrupt()
					}
				}}, err
			},
		})
		done, id := put(t, other, "mail", "x"), put(t, other, "mail", "y")
		job := reserve(t, conn)
		next, deleted, err := conn.DeleteAndReserve(t.Context(), job, time.Hour)
		want(t, "the delete", deleted, nil)
		want(t, "the reserve behind it", err, beanstalk.ErrInterrupted)
		if next != nil || conn.Connected() {
			t.Errorf("got job %+v, connected: %v; want none, and a connection closed", next, conn.Connected())
		}
		if job.ID != done || state(t, other, done) != "" {
			t.Errorf("job %d was done, job %d is %q", job.ID, done, state(t, other, done))
		}
		if back := reserve(t, other); back.ID != id {
			t.Errorf("job %d is ready, want %d", back.ID, id)
		}
	})
}

func TestInterruptOfDeleteAndReserveLosesNoJob(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, server brokertest.Server) {
		conn, other := open(t, server, "mail"), open(t, server, "mail")
		for range 100 {
			conn.Resume()
			done := put(t, other, "mail", "x")
			job := reserve(t, conn)
			type outcome struct {
				next         *beanstalk.Job
				deleted, err error
			}
			result, incoming := make(chan outcome, 1), make(chan uint64, 1)
			go func() {
				next, deleted, err := conn.DeleteAndReserve(t.Context(), job, time.Hour)
				result <- outcome{next, deleted, err}
			}()
			go func() {
				id, err := other.Put(t.Context(), beanstalk.Put{Tube: "mail", TTR: time.Hour})
				if err != nil {
					t.Errorf("put: %v", err)
				}
				incoming <- id
			}()
			conn.Interrupt()
			got, id := <-result, <-incoming
			want(t, "the delete", got.deleted, nil)
			if got := state(t, other, done); got != "" {
				t.Fatalf("the job that was done is %s, want it deleted", got)
			}
			holder, next := conn, got.next
			if errors.Is(got.err, beanstalk.ErrInterrupted) {
				holder, next = other, reserve(t, other)
			} else {
				want(t, "the reserve behind it", got.err, nil)
			}
			if next.ID != id {
				t.Fatalf("got job %d, want %d", next.ID, id)
			}
			want(t, "delete", holder.Delete(t.Context(), next), nil)
		}
	})
}
