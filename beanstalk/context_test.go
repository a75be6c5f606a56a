package beanstalk_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/broker"
	"github.com/postburner/postburner/broker/brokertest"
)

// commands is one of each kind that goes its own way to the server.
var commands = []struct {
	name string
	run  func(ctx context.Context, conn *beanstalk.Conn, held *beanstalk.Job) error
}{
	{"stats", func(ctx context.Context, conn *beanstalk.Conn, _ *beanstalk.Job) error {
		_, err := conn.Stats(ctx)
		return err
	}},
	{"put", func(ctx context.Context, conn *beanstalk.Conn, _ *beanstalk.Job) error {
		_, err := conn.Put(ctx, beanstalk.Put{Tube: "mail", TTR: time.Minute})
		return err
	}},
	{"reserve", func(ctx context.Context, conn *beanstalk.Conn, _ *beanstalk.Job) error {
		_, err := conn.Reserve(ctx, time.Hour)
		return err
	}},
	{"touch", func(ctx context.Context, conn *beanstalk.Conn, held *beanstalk.Job) error {
		return conn.Touch(ctx, held)
	}},
	{"delete", func(ctx context.Context, conn *beanstalk.Conn, held *beanstalk.Job) error {
		return conn.Delete(ctx, held)
	}},
	{"delete with a reserve", func(ctx context.Context, conn *beanstalk.Conn, held *beanstalk.Job) error {
		_, deleted, err := conn.DeleteAndReserve(ctx, held, time.Hour)
		if deleted == nil || err == nil {
			return nil
		}
		return errors.Join(deleted, err)
	}},
}

func TestAContextThatHasEndedSendsNothingAndCostsNoConnection(t *testing.T) {
	t.Parallel()
	server := brokertest.Start(t)
	conn := open(t, server, "mail")
	put(t, conn, "mail", "x")
	job := reserve(t, conn)
	reason := errors.New("too late")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	for range 20 { // a watcher that closes the connection would do so from another goroutine
		for _, command := range commands {
			err := command.run(ctx, conn, job)
			want(t, command.name, err, beanstalk.ErrNotSent)
			want(t, command.name, err, reason)
		}
	}
	want(t, "touch", conn.Touch(t.Context(), job), nil)
}

func TestAContextThatHasEndedDialsNothing(t *testing.T) {
	t.Parallel()
	conn := scripted(t, beanstalk.Options{}) // a dial would fail otherwise
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := conn.Stats(ctx)
	want(t, "stats", err, beanstalk.ErrNotSent)
	want(t, "stats", err, context.Canceled)
}

func TestTheEndOfAContextEndsACommandThatWaitsForItsReply(t *testing.T) {
	t.Parallel()
	for _, command := range commands {
		t.Run(command.name, func(t *testing.T) {
			t.Parallel()
			server := brokertest.Start(t)
			sent := make(chan struct{}, 10)
			conn := start(t, beanstalk.Options{Tubes: []string{"mail"}, Dial: func(context.Context) (net.Conn, error) {
				c, err := net.Dial("tcp", server.Addr())
				return signalling{c, func([]byte) { sent <- struct{}{} }}, err
			}})
			put(t, conn, "mail", "x")
			job := reserve(t, conn)
			for range 2 {
				<-sent
			}
			server.Fail(broker.Faults{Stall: true})
			reason := errors.New("no time left")
			ctx, cancel := context.WithCancelCause(t.Context())
			failed := make(chan error)
			go func() { failed <- command.run(ctx, conn, job) }()
			<-sent
			cancel(reason)
			err := <-failed
			want(t, command.name, err, beanstalk.ErrUnknownOutcome)
			want(t, command.name, err, reason)
			want(t, "touch", conn.Touch(t.Context(), job), beanstalk.ErrJobLost)
		})
	}
}

// awaited is a context that tells when somebody waits for its end.
type awaited struct {
	context.Context
	begins func()
}

func (a awaited) Done() <-chan struct{} {
	a.begins()
	return a.Context.Done()
}

func TestTheEndOfAContextEndsTheWaitForTheTurn(t *testing.T) {
	t.Parallel()
	server := brokertest.Start(t)
	conn, other := open(t, server, "mail"), open(t, server)
	put(t, conn, "mail", "x")
	job := reserve(t, conn)
	ended := make(chan error)
	go func() {
		_, err := conn.Reserve(t.Context(), time.Hour)
		ended <- err
	}()
	waiting(t, other, "mail") // and so holds the turn
	for _, command := range commands {
		reason := errors.New("no time left")
		ctx, cancel := context.WithCancelCause(t.Context())
		err := command.run(awaited{ctx, func() { cancel(reason) }}, conn, job)
		want(t, command.name, err, beanstalk.ErrNotSent)
		want(t, command.name, err, reason)
	}
	put(t, other, "mail", "for the one that waits")
	want(t, "the reserve that held the turn", <-ended, nil)
	want(t, "touch", conn.Touch(t.Context(), job), nil)
}
