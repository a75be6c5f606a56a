package client_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/postburner/postburner/broker"
	"github.com/postburner/postburner/broker/brokertest"
	"github.com/postburner/postburner/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type sendEmail struct {
	UserID int    `json:"user_id"`
	Note   string `json:"note,omitempty"`
}

func (sendEmail) Kind() string { return "SendEmail" }

func newClient(t testing.TB, o client.Options) *client.Client {
	t.Helper()
	if o.Environment == "" {
		o.Environment = "test"
	}
	c, err := client.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestAReceiptSaysWhereTheJobIs(t *testing.T) {
	t.Parallel()
	server := brokertest.Start(t)
	c := newClient(t, client.Options{URL: server.URL()})
	receipt, err := c.Enqueue(t.Context(), sendEmail{UserID: 7}, client.Queue("mailers"), client.Delay(90*time.Second+1), client.Priority(0), client.TTR(1500*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	jobs := server.Jobs("postburner.test.mailers")
	if len(jobs) != 1 || jobs[0].ID != receipt.BeanstalkID || receipt.Tube != "postburner.test.mailers" {
		t.Fatalf("receipt %+v, jobs %+v", receipt, jobs)
	}
	if j := jobs[0]; j.State != "delayed" || j.Priority != 0 || j.Delay != 91*time.Second || j.TTR != 2*time.Second {
		t.Errorf("job %+v, want it delayed 91 s (rounded up), priority 0, TTR 2 s", j)
	}
	var body struct {
		JobID     string           `json:"job_id"`
		Arguments []map[string]any `json:"arguments"`
	}
	if err := json.Unmarshal(jobs[0].Body, &body); err != nil {
		t.Fatal(err)
	}
	id, err := uuid.Parse(body.JobID)
	if err != nil || id.Version() != 7 || body.JobID != receipt.JobID {
		t.Errorf("job_id %s, want the receipt's %s, a UUID version 7 (%v)", body.JobID, receipt.JobID, err)
	}
	if len(body.Arguments) != 1 || body.Arguments[0]["user_id"] != 7.0 {
		t.Errorf("arguments %v, want one object", body.Arguments)
	}
}

func TestDefaultsAndTheLastOfDelayAndAt(t *testing.T) {
	t.Parallel()
	server := brokertest.Start(t)
	c := newClient(t, client.Options{URL: server.URL()})
	for _, options := range [][]client.Option{
		{}, {client.At(time.Now().Add(-time.Hour))}, {client.Delay(time.Hour), client.At(time.Now())}, {client.At(time.Now().Add(time.Hour)), client.Delay(0)},
	} {
		if _, err := c.Enqueue(t.Context(), sendEmail{}, options...); err != nil {
			t.Fatal(err)
		}
	}
	for _, j := range server.Jobs("postburner.test.default") {
		if j.State != "ready" || j.Priority != 65536 || j.TTR != 300*time.Second {
			t.Errorf("job %+v, want it ready with priority 65536 and TTR 300 s", j)
		}
	}
}

func TestWhatCannotBeEnqueuedIsRefusedBeforeItIsSent(t *testing.T) {
	t.Parallel()
	server := brokertest.Start(t)
	c := newClient(t, client.Options{URL: server.URL()})
	enqueue := func(options ...client.Option) error {
		_, err := c.Enqueue(t.Context(), sendEmail{}, options...)
		return err
	}
	if queue := new(client.InvalidQueueError); !errors.As(enqueue(client.Queue("not ok")), &queue) || queue.Queue != "not ok" {
		t.Errorf("a queue with a blank: %v", enqueue(client.Queue("not ok")))
	}
	if queue := new(client.InvalidQueueError); !errors.As(enqueue(client.Queue("")), &queue) {
		t.Errorf("an empty queue: %v", enqueue(client.Queue("")))
	}
	for want, option := range map[string]client.Option{
		"a TTR of 500ms": client.TTR(500 * time.Millisecond), "a delay of -1s": client.Delay(-time.Second), "MaxRetries is -1": client.MaxRetries(-1), "MaxRetries is 2147483648": client.MaxRetries(math.MaxInt32 + 1), "136 years": client.Delay(200 * 366 * 24 * time.Hour),
	} {
		if err := enqueue(option); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
	for _, raw := range []client.Raw{{JobKind: "", Arguments: json.RawMessage(`{}`)}, {JobKind: "A", Arguments: json.RawMessage(`[1]`)}, {JobKind: "A", Arguments: json.RawMessage(`{`)}} {
		_, err := c.Enqueue(t.Context(), raw)
		if arguments := new(client.ArgumentsError); !errors.As(err, &arguments) {
			t.Errorf("Enqueue(%+v) = %v, want an *ArgumentsError", raw, err)
		}
	}
	// max-job-size − 2 is the largest that a binlog survives.
	put := func(note int) (size int, err error) {
		receipt, err := c.Enqueue(t.Context(), sendEmail{Note: strings.Repeat("x", note)})
		if large, ok := errors.AsType[*client.TooLargeError](err); ok {
			return large.Size, err
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range server.Jobs(receipt.Tube) {
			if j.ID == receipt.BeanstalkID {
				size = len(j.Body)
			}
		}
		return size, nil
	}
	fit := func(bytes int) error {
		for {
			size, _ := put(60_000)
			if got, err := put(60_000 + bytes - size); got == bytes { // the time in it may be shorter by a digit or two
				return err
			}
		}
	}
	if err := fit(broker.DefaultMaxJobSize - 2); err != nil {
		t.Errorf("the largest safe body: %v", err)
	}
	if large := new(client.TooLargeError); !errors.As(fit(broker.DefaultMaxJobSize-1), &large) || large.Max != broker.DefaultMaxJobSize-2 {
		t.Errorf("a body of max-job-size − 1: %v", fit(broker.DefaultMaxJobSize-1))
	}
}

func TestOptionsAreCheckedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := client.New(client.Options{URL: "http://x", Environment: "a b", DefaultTTR: time.Millisecond, Connections: -1, Timeout: -time.Second})
	for _, want := range []string{"beanstalk://", "byte 13", "Options.DefaultTTR: a TTR of 1ms", "Options.Connections is -1", "Options.Timeout is -1s"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New = %v, want it to say %q", err, want)
		}
	}
}

func TestEnqueueManyKeepsTheOrderAndSkipsWhatIsInvalid(t *testing.T) {
	t.Parallel()
	brokertest.Each(t, func(t *testing.T, server brokertest.Server) {
		const n = 5000
		c := newClient(t, client.Options{URL: server.URL()})
		items := make([]client.Item, n)
		for i := range items {
			items[i] = client.Item{Args: sendEmail{UserID: i}, Options: []client.Option{client.Queue(fmt.Sprint("q", i%3))}}
		}
		items[1].Options = []client.Option{client.Queue("not ok")}
		items[n-1].Args = sendEmail{Note: strings.Repeat("x", 70_000)}
		results, err := c.EnqueueMany(t.Context(), items)
		many := new(client.ManyError)
		if !errors.As(err, &many) || many.Failed != 2 || many.Total != n || many.First != 1 {
			t.Fatalf("EnqueueMany: %v", err)
		}
		if queue := new(client.InvalidQueueError); !errors.As(results[1].Err, &queue) {
			t.Errorf("the invalid one: %v", results[1].Err)
		}
		if large := new(client.TooLargeError); !errors.As(results[n-1].Err, &large) {
			t.Errorf("the large one: %v", results[n-1].Err)
		}
		seen := map[uint64]bool{}
		for i, r := range results {
			if r.Err != nil {
				continue
			}
			if r.Tube != fmt.Sprint("postburner.test.q", i%3) || seen[r.BeanstalkID] || r.BeanstalkID == 0 {
				t.Fatalf("result %d: %+v", i, r)
			}
			seen[r.BeanstalkID] = true
		}
		if results, err := c.EnqueueMany(t.Context(), nil); len(results) != 0 || err != nil {
			t.Errorf("nothing to enqueue: %v, %v", results, err)
		}
	})
}

func TestAClientIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	server := brokertest.Start(t)
	c := newClient(t, client.Options{URL: server.URL(), Connections: 3})
	var running sync.WaitGroup
	for range 30 {
		running.Go(func() {
			for range 20 {
				if _, err := c.Enqueue(t.Context(), sendEmail{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	if n := len(server.Jobs("postburner.test.default")); n != 600 {
		t.Errorf("%d jobs, want 600", n)
	}
}

func TestTheServersRefusalsAreTyped(t *testing.T) {
	t.Parallel()
	server := brokertest.Start(t)
	c := newClient(t, client.Options{URL: server.URL()})
	for want, faults := range map[error]broker.Faults{client.ErrDraining: {Draining: true}, client.ErrOutOfMemory: {OutOfMemory: true}} {
		server.Fail(faults)
		if receipt, err := c.Enqueue(t.Context(), sendEmail{}); !errors.Is(err, want) || receipt != (client.Receipt{}) {
			t.Errorf("%+v: %+v, %v, want %v", faults, receipt, err, want)
		}
	}
}

func TestALostConnectionIsDialledAgain(t *testing.T) {
	t.Parallel()
	server := brokertest.Start(t)
	c := newClient(t, client.Options{URL: server.URL()})
	if _, err := c.Enqueue(t.Context(), sendEmail{}); err != nil {
		t.Fatalf("before any cut: %v", err)
	}
	for cut := range 3 {
		server.Cut()
		_, err := c.Enqueue(t.Context(), sendEmail{})
		if errors.Is(err, client.ErrUnknownOutcome) { // the cut was noticed by this job, not before it
			_, err = c.Enqueue(t.Context(), sendEmail{})
		}
		if err != nil {
			t.Errorf("cut %d: %v, want nil at the second try at the latest", cut+1, err)
		}
	}
}

func TestALostConnectionInEnqueueManyIsToldJobByJob(t *testing.T) {
	t.Parallel()
	server := brokertest.Start(t)
	items := make([]client.Item, 4000)
	for i := range items {
		items[i] = client.Item{Args: sendEmail{UserID: i, Note: strings.Repeat("x", 1000)}}
	}
	dials := 0
	c := newClient(t, client.Options{Connections: 1, Dial: func(ctx context.Context) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", server.Addr())
		if dials++; dials == 1 && err == nil {
			conn = &cutConn{Conn: conn, closed: make(chan struct{})}
		}
		return conn, err
	}})
	results, err := c.EnqueueMany(t.Context(), items)
	many, ok := errors.AsType[*client.ManyError](err)
	if !ok {
		t.Fatalf("EnqueueMany = %v, want a *ManyError", err)
	}
	unknown, unsent := 0, 0
	for i, r := range results {
		switch {
		case errors.Is(r.Err, client.ErrUnknownOutcome):
			unknown++
		case errors.Is(r.Err, client.ErrNotSent):
			unsent++
		case r.Err != nil || r.BeanstalkID == 0:
			t.Errorf("job %d: %+v", i, r)
		}
	}
	if unknown == 0 || unsent == 0 || many.Unknown != unknown || many.Failed != unknown+unsent || many.Failed > 2000 {
		t.Errorf("%d unknown, %d not sent of the chunk; the error says %+v", unknown, unsent, *many)
	}
	if dials != 2 || results[2000].Err != nil {
		t.Errorf("%d dials, and the next chunk begins with %v, want it enqueued over a second connection", dials, results[2000].Err)
	}
	want := fmt.Sprintf("client: %d of 4000 jobs were not, or not certainly, enqueued; the outcome of %d is unknown; the first, at index %d: ", many.Failed, unknown, many.First)
	if text := err.Error(); !strings.HasPrefix(text, want) {
		t.Errorf("the error says %q, want it to begin with %q", text, want)
	}
	times := map[string]int{}
	for _, j := range server.Jobs("postburner.test.default") {
		var body struct {
			JobID string `json:"job_id"`
		}
		if err := json.Unmarshal(j.Body, &body); err != nil {
			t.Fatal(err)
		}
		times[body.JobID]++
	}
	for i, r := range results {
		n, least, most := times[r.JobID], 1, 1
		switch {
		case errors.Is(r.Err, client.ErrUnknownOutcome):
			least = 0
		case r.Err != nil:
			least, most = 0, 0
		}
		if n < least || n > most {
			t.Errorf("job %d (%v) is there %d times, want %d to %d", i, r.Err, n, least, most)
		}
	}
}

func TestAManyErrorSaysHowManyOutcomesAreUnknownIfThereAreSome(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  client.ManyError
		want string
	}{
		{client.ManyError{Total: 10, Failed: 2, First: 1, Err: client.ErrDraining}, "client: 2 of 10 jobs were not, or not certainly, enqueued; the first, at index 1: " + client.ErrDraining.Error()},
		{client.ManyError{Total: 10, Failed: 2, Unknown: 1, First: 1, Err: client.ErrDraining}, "client: 2 of 10 jobs were not, or not certainly, enqueued; the outcome of 1 is unknown; the first, at index 1: " + client.ErrDraining.Error()},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// cutConn breaks at the write with which more than cutAfter bytes would be sent. Replies are
// withheld once half of them are, so that some jobs have none when that happens.
type cutConn struct {
	net.Conn
	sent   atomic.Int64
	cut    sync.Once
	closed chan struct{}
}

const cutAfter = 200_000

func (c *cutConn) Write(p []byte) (int, error) {
	if c.sent.Add(int64(len(p))) > cutAfter {
		_ = c.Close() // that is the cut
		return 0, net.ErrClosed
	}
	return c.Conn.Write(p)
}

func (c *cutConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.sent.Load() < cutAfter/2 {
		return n, err
	}
	<-c.closed
	return 0, net.ErrClosed
}

func (c *cutConn) Close() error {
	c.cut.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

func TestWithoutAServerTheCallerIsToldSoon(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	c := newClient(t, client.Options{URL: "beanstalk://" + addr})
	for range 3 { // each call dials anew
		_, err := c.Enqueue(t.Context(), sendEmail{})
		if !errors.Is(err, client.ErrNotSent) || errors.Is(err, client.ErrUnknownOutcome) || !strings.Contains(err.Error(), addr) || !strings.Contains(err.Error(), "is it running there") {
			t.Errorf("without a server: %v", err)
		}
	}
	again, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	b := broker.New(broker.Options{})
	served := make(chan error, 1)
	go func() { served <- b.Serve(context.Background(), again) }()
	if _, err := c.Enqueue(t.Context(), sendEmail{}); err != nil {
		t.Errorf("once the server is there: %v", err)
	}
	_ = b.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// A server that takes the job and hangs up before it answers: the outcome is unknown, the
// receipt has the identity, and the job is sent once.
func TestALostReplyIsAnUnknownOutcomeAndNothingIsSentTwice(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	puts := make(chan string, 10)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { hangUpOnPut(conn, puts) })
		}
	})
	c := newClient(t, client.Options{URL: "beanstalk://" + listener.Addr().String()})
	receipt, err := c.Enqueue(t.Context(), sendEmail{}, client.JobID("mine"))
	if !errors.Is(err, client.ErrUnknownOutcome) || receipt.JobID != "mine" || receipt.BeanstalkID != 0 {
		t.Errorf("receipt %+v, %v, want an unknown outcome with the JobID", receipt, err)
	}
	results, err := c.EnqueueMany(t.Context(), []client.Item{{Args: sendEmail{}}, {Args: sendEmail{}}})
	if err == nil || !errors.Is(results[0].Err, client.ErrUnknownOutcome) {
		t.Errorf("EnqueueMany: %+v, %v", results, err)
	}
	_ = c.Close()
	_ = listener.Close()
	serving.Wait()
	if n := len(puts); n != 2 {
		t.Errorf("%d connections saw a put, want 2: one for each call", n)
	}
}

func hangUpOnPut(conn net.Conn, puts chan<- string) {
	defer func() { _ = conn.Close() }()
	r := bufio.NewReader(conn)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		switch {
		case strings.HasPrefix(line, "put "):
			puts <- line
			return
		case strings.HasPrefix(line, "use "):
			_, _ = io.WriteString(conn, "USING x\r\n")
		case strings.HasPrefix(line, "stats"):
			body := "---\nmax-job-size: 65535\nid: x\nversion: 1\nuptime: 0\n"
			for _, field := range []string{"current-jobs-ready", "current-jobs-reserved", "current-jobs-delayed", "current-jobs-buried", "total-jobs", "current-connections", "current-tubes", "current-producers", "current-workers", "current-waiting"} {
				body += field + ": 0\n"
			}
			_, _ = fmt.Fprintf(conn, "OK %d\r\n%s\r\n", len(body), body)
		}
	}
}

func TestAContextEndsTheWait(t *testing.T) {
	t.Parallel()
	server := brokertest.Start(t)
	server.Fail(broker.Faults{Stall: true})
	c := newClient(t, client.Options{URL: server.URL(), Connections: 1})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var running sync.WaitGroup
	for range 3 { // one waits for the server, the others for the connection
		running.Go(func() {
			if _, err := c.Enqueue(ctx, sendEmail{}); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, client.ErrNotSent) {
				t.Errorf("Enqueue = %v, want the deadline, and the job not sent", err)
			}
		})
	}
	running.Wait()
	_ = c.Close()
	if _, err := c.Enqueue(t.Context(), sendEmail{}); !errors.Is(err, client.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	server.Fail(broker.Faults{})
}

func BenchmarkEnqueue(b *testing.B) {
	server := brokertest.StartBeanstalkd(b)
	c := newClient(b, client.Options{URL: server.URL()})
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			if _, err := c.Enqueue(b.Context(), sendEmail{UserID: i}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("many", func(b *testing.B) {
		items := make([]client.Item, b.N)
		for i := range items {
			items[i].Args = sendEmail{UserID: i}
		}
		b.ReportAllocs()
		b.ResetTimer()
		if _, err := c.EnqueueMany(b.Context(), items); err != nil {
			b.Fatal(err)
		}
	})
}

// buryingConn is a connection to a server that buries each job that it is given.
type buryingConn struct{ net.Conn }

func (c buryingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return copy(p, bytes.ReplaceAll(p[:n], []byte("INSERTED "), []byte("BURIED "))), err
}

func TestAJobThatTheServerBuriedHasItsReceipt(t *testing.T) {
	t.Parallel()
	server := brokertest.Start(t)
	c := newClient(t, client.Options{Dial: func(ctx context.Context) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", server.Addr())
		return buryingConn{conn}, err
	}})
	receipt, err := c.Enqueue(t.Context(), sendEmail{})
	if !errors.Is(err, client.ErrBuried) || receipt.BeanstalkID == 0 || receipt.JobID == "" {
		t.Errorf("Enqueue = %+v, %v, want the receipt and ErrBuried", receipt, err)
	}
}
