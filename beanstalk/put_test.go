package beanstalk_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/broker"
	"github.com/postburner/postburner/broker/brokertest"
)

func TestPutManyAnswersEachPutInItsPlace(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, server brokertest.Server) {
		conn := open(t, server)
		puts := []beanstalk.Put{
			{Tube: "one", Body: []byte("a"), TTR: time.Minute},
			{Tube: "", Body: []byte("b"), TTR: time.Minute},
			{Tube: "two", Body: []byte("c"), Priority: 9, Delay: time.Hour, TTR: time.Minute},
			{Tube: "two", Body: make([]byte, 65536), TTR: time.Minute},
			{Tube: "one", Body: []byte("d"), TTR: time.Millisecond},
			{Tube: "one", Body: []byte("e"), Delay: -1, TTR: time.Minute},
			{Tube: "one", Body: []byte("f"), Delay: (math.MaxUint32 + 1) * time.Second, TTR: time.Minute},
			{Tube: "one", Body: []byte("g"), TTR: time.Minute},
		}
		errs := []error{
			nil, beanstalk.ErrNotSent, nil, beanstalk.ErrJobTooBig,
			beanstalk.ErrNotSent, beanstalk.ErrNotSent, beanstalk.ErrNotSent, nil,
		}
		for i, result := range conn.PutMany(t.Context(), puts) {
			want(t, fmt.Sprint("put ", i), result.Err, errs[i])
			if result.Err != nil {
				continue
			}
			stats, err := conn.StatsJob(t.Context(), result.ID)
			want(t, "stats-job", err, nil)
			if stats.Tube != puts[i].Tube || stats.Priority != puts[i].Priority || stats.Delay != puts[i].Delay {
				t.Errorf("put %d is %+v", i, stats)
			}
		}
		// The tube in use is another by now than go-beanstalk believes.
		_, _, err := conn.PeekReady(t.Context(), "one")
		want(t, "peek-ready one", err, nil)
		id := put(t, conn, "two", "h")
		ready, _, err := conn.PeekReady(t.Context(), "two")
		want(t, "peek-ready two", err, nil)
		if ready != id {
			t.Errorf("ready in two is %d, want %d", ready, id)
		}
	})
}

func TestPutManyOfMoreThanTheSocketsHold(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, server brokertest.Server) {
		conn := open(t, server)
		puts := make([]beanstalk.Put, 1000)
		for i := range puts {
			puts[i] = beanstalk.Put{Tube: fmt.Sprint("tube", i%3), Body: make([]byte, 20_000), TTR: time.Minute}
		}
		for i, result := range conn.PutMany(t.Context(), puts) {
			want(t, fmt.Sprint("put ", i), result.Err, nil)
			if result.ID != uint64(i+1) {
				t.Fatalf("put %d has id %d", i, result.ID)
			}
		}
		if results := conn.PutMany(t.Context(), nil); len(results) != 0 {
			t.Errorf("no puts have %d results", len(results))
		}
	})
}

func TestADrainingOrFullServerRefusesPuts(t *testing.T) {
	b := brokertest.Start(t)
	conn := open(t, b)
	some := beanstalk.Put{Tube: "default", TTR: time.Minute}
	for _, c := range []struct {
		faults broker.Faults
		want   error
	}{{broker.Faults{Draining: true}, beanstalk.ErrDraining}, {broker.Faults{OutOfMemory: true}, beanstalk.ErrOutOfMemory}} {
		b.Fail(c.faults)
		_, err := conn.Put(t.Context(), some)
		want(t, "put", err, c.want)
	}
	b.Fail(broker.Faults{})
	_, err := conn.Put(t.Context(), some)
	want(t, "put afterwards", err, nil)
}

func TestTheFateOfPutsWhoseConnectionBreaks(t *testing.T) {
	t.Parallel()
	some := beanstalk.Put{Tube: "default", Body: []byte("x"), TTR: time.Minute}
	const line = "put 0 0 60 1"
	conn := scripted(t, beanstalk.Options{},
		script{{line, ""}, {"x", "INSERTED 1\r\n"}, {line, ""}, {"x", "BURIED 2\r\n"}, {line, ""}, {"x", "EOF"}},
		script{{line, ""}, {"x", "INSERTED x\r\n"}},
		script{{line, ""}, {"x", "WHAT\r\n"}},
	)
	results := conn.PutMany(t.Context(), []beanstalk.Put{some, some, some})
	want(t, "the first", results[0].Err, nil)
	want(t, "the second", results[1].Err, beanstalk.ErrBuried)
	if results[0].ID != 1 || results[1].ID != 2 {
		t.Errorf("ids %d and %d", results[0].ID, results[1].ID)
	}
	want(t, "the third, whose answer never came", results[2].Err, beanstalk.ErrUnknownOutcome)
	for _, why := range []string{"an id that is none", "an answer that is none"} {
		_, err := conn.Put(t.Context(), some)
		want(t, why, err, beanstalk.ErrUnknownOutcome)
		if !strings.Contains(err.Error(), "unexpected reply") {
			t.Errorf("%s: %v", why, err)
		}
	}
	_, err := conn.Put(t.Context(), some)
	want(t, "with no connection at all", err, beanstalk.ErrNotSent)
}

func TestPutManyKnowsWhichPutsTheCutConnectionTook(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("x", 40_000) // one fits into a window, two do not
	const line = "put 0 0 60 40000"
	conn := scripted(t, beanstalk.Options{}, script{
		{"use mail", ""}, {line, ""}, {body, "USING mail\r\nINSERTED 1\r\n"}, {line, ""}, {body, "EOF"},
	})
	some := beanstalk.Put{Tube: "mail", Body: []byte(body), TTR: time.Minute}
	results := conn.PutMany(t.Context(), []beanstalk.Put{some, {}, some, some, some})
	for i, target := range []error{nil, beanstalk.ErrNotSent, beanstalk.ErrUnknownOutcome, beanstalk.ErrNotSent, beanstalk.ErrNotSent} {
		want(t, fmt.Sprint("put ", i), results[i].Err, target)
	}
	if results[0].ID != 1 {
		t.Errorf("the put that was answered has id %d, want 1", results[0].ID)
	}
}

// The put behind a refused `use` went to the tube before; its answer must not be taken for another's.
func TestARefusedUseIsNoAnswerToAPut(t *testing.T) {
	t.Parallel()
	conn := scripted(t, beanstalk.Options{}, script{
		{"put 0 0 60 1", ""}, {"a", ""}, {"use mail", ""}, {"put 0 0 60 1", ""},
		{"b", "INSERTED 1\r\nOUT_OF_MEMORY\r\nINSERTED 2\r\n"},
	})
	results := conn.PutMany(t.Context(), []beanstalk.Put{
		{Tube: "default", Body: []byte("a"), TTR: time.Minute},
		{Tube: "mail", Body: []byte("b"), TTR: time.Minute},
	})
	want(t, "the put into the tube in use", results[0].Err, nil)
	want(t, "the put behind the refusal", results[1].Err, beanstalk.ErrUnknownOutcome)
	if errors.Is(results[1].Err, beanstalk.ErrOutOfMemory) {
		t.Errorf("the put behind the refusal counts as refused: %v", results[1].Err)
	}
	if conn.Connected() {
		t.Error("the connection is kept")
	}
}

func TestPutsBehindALostConnectionAreNotSent(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t)
	b.Fail(broker.Faults{Stall: true}) // answers nothing, and reads until its buffers are full
	conn := start(t, beanstalk.Options{URL: b.URL(), Redial: noWait, ReplyTimeout: 200 * time.Millisecond})
	puts, body := make([]beanstalk.Put, 2000), make([]byte, 60_000)
	for i := range puts {
		puts[i] = beanstalk.Put{Tube: "default", Body: body, TTR: time.Minute}
	}
	results := conn.PutMany(t.Context(), puts)
	want(t, "the first", results[0].Err, beanstalk.ErrUnknownOutcome)
	want(t, "the last", results[len(results)-1].Err, beanstalk.ErrNotSent)
}
