package broker_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/postburner/postburner/broker"
	"github.com/postburner/postburner/broker/brokertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAFakeHourCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker.New(broker.Options{})
		here, there := net.Pipe()
		served := make(chan struct{})
		go func() {
			defer close(served)
			b.ServeConn(t.Context(), there)
		}()
		r := bufio.NewReader(here)
		ask := func(command string) string {
			if _, err := io.WriteString(here, command+"\r\n"); err != nil {
				t.Fatal(err)
			}
			line, err := r.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			return line
		}
		start := time.Now()
		if got := ask("reserve-with-timeout 3600"); got != "TIMED_OUT\r\n" || time.Since(start) != time.Hour {
			t.Errorf("got %q after %v", got, time.Since(start))
		}
		if got := ask("put 1 7200 10 0\r\n"); got != "INSERTED 1\r\n" {
			t.Errorf("put answered %q", got)
		}
		start = time.Now()
		if got := ask("reserve-with-timeout 9999"); got != "RESERVED 1 0\r\n" || time.Since(start) != 2*time.Hour {
			t.Errorf("got %q after %v, want the job after two hours", got, time.Since(start))
		}
		if line, err := r.ReadString('\n'); line != "\r\n" || err != nil {
			t.Errorf("body %q, %v", line, err)
		}
		start = time.Now()
		if got := ask("reserve-with-timeout 100"); got != "DEADLINE_SOON\r\n" || time.Since(start) != 9*time.Second {
			t.Errorf("got %q after %v, want the warning a second before the TTR of 10", got, time.Since(start))
		}
		_ = here.Close()
		<-served
		_ = b.Close()
	})
}

func TestFaults(t *testing.T) {
	t.Parallel()
	ready := func(t *testing.T) (*brokertest.Embedded, *wire) {
		b := brokertest.Start(t)
		w := connect(t, b)
		w.want("put 5 0 100 1\r\nx", "INSERTED 1")
		w.want("reserve", "RESERVED 1 1\r\nx")
		return b, w
	}
	t.Run("draining refuses new jobs alone", func(t *testing.T) {
		t.Parallel()
		b, w := ready(t)
		b.Fail(broker.Faults{Draining: true})
		w.want("put 5 0 100 1\r\nx", "DRAINING")
		w.wantField("stats", "draining", "true")
		w.want("release 1 5 10", "RELEASED")
		b.Fail(broker.Faults{})
		w.want("put 5 0 100 1\r\nx", "INSERTED 3")
	})
	t.Run("a full disk leaves a released job reserved by nobody", func(t *testing.T) {
		t.Parallel()
		b, w := ready(t)
		b.Fail(broker.Faults{OutOfMemory: true})
		w.want("put 5 0 100 1\r\nx", "OUT_OF_MEMORY")
		w.want("release 1 5 10", "OUT_OF_MEMORY")
		w.want("delete 1", "NOT_FOUND")
		w.wantField("stats-job 1", "state", "reserved")
	})
	t.Run("a full disk does not keep a job from being given back at once", func(t *testing.T) {
		t.Parallel()
		b, w := ready(t)
		b.Fail(broker.Faults{OutOfMemory: true})
		w.want("release 1 5 0", "RELEASED")
		w.want("reserve", "RESERVED 1 1\r\nx")
		w.want("bury 1 5", "INTERNAL_ERROR")
	})
	t.Run("a stall answers nobody until it ends", func(t *testing.T) {
		t.Parallel()
		b, w := ready(t)
		b.Fail(broker.Faults{Stall: true})
		w.send("touch 1\r\n")
		if err := w.conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if line, err := w.r.ReadString('\n'); err == nil {
			t.Errorf("a stalled broker answered %q", line)
		}
		if err := w.conn.SetReadDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		b.Fail(broker.Faults{})
		if got := w.reply(); got != "TOUCHED\r\n" {
			t.Errorf("after the stall: %q", got)
		}
	})
	t.Run("refused connections end at once, cut ones too", func(t *testing.T) {
		t.Parallel()
		b, w := ready(t)
		b.Fail(broker.Faults{Refuse: true})
		if _, err := connect(t, b).r.ReadByte(); err == nil {
			t.Error("a refused connection gave a byte")
		}
		w.want("touch 1", "TOUCHED")
		b.Cut()
		if _, err := w.r.ReadByte(); err == nil {
			t.Error("a cut connection gave a byte")
		}
		b.Fail(broker.Faults{})
		connect(t, b).want("reserve-with-timeout 10", "RESERVED 1 1\r\nx")
	})
}

func TestJobsListsATube(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t)
	w := connect(t, b)
	w.want("put 5 0 100 1\r\na", "INSERTED 1")
	w.want("put 6 50 100 1\r\nb", "INSERTED 2")
	var got []string
	for _, j := range b.Jobs("default") {
		got = append(got, fmt.Sprintf("%d %s %d %s", j.ID, j.State, j.Priority, j.Body))
	}
	if want := "1 ready 5 a, 2 delayed 6 b"; strings.Join(got, ", ") != want {
		t.Errorf("Jobs = %s, want %s", strings.Join(got, ", "), want)
	}
}

// FuzzProtocol feeds a session whatever it likes: it must end, without a panic.
func FuzzProtocol(f *testing.F) {
	for _, seed := range []string{
		"put 1 0 1 1\r\nx\r\nreserve\r\ndelete 1\r\nquit\r\n", "stats\r\nstats-tube default\r\n", "kick 18446744073709551616\r\n",
		"put 1 1 1 70000\r\n", "use \x00\r\n", strings.Repeat("a", 500) + "\r\nstats\r\n", "reserve-with-timeout -1\r\n", "put 4294967295 4294967295 4294967295 0\r\n\r\n", "pause-tube default 9\r\n\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		b := broker.New(broker.Options{MaxJobSize: 1000})
		here, there := net.Pipe()
		served := make(chan struct{})
		go func() {
			defer close(served)
			b.ServeConn(context.Background(), there)
		}()
		go func() {
			_, _ = here.Write(input) // a session that has ended takes no more
			_ = here.Close()
		}()
		_, _ = io.Copy(io.Discard, here) // until either side is done
		<-served
		_ = b.Close()
	})
}

func Example() {
	b := broker.New(broker.Options{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	served := make(chan error)
	go func() { served <- b.Serve(ctx, listener) }()

	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := io.WriteString(conn, "put 0 0 60 5\r\nhello\r\nquit\r\n"); err != nil {
		fmt.Println(err)
	}
	replies, _ := io.ReadAll(conn)
	fmt.Println(strings.Fields(string(replies)))
	fmt.Println(string(b.Jobs("default")[0].Body))
	stop()
	fmt.Println(<-served)
	// Output:
	// [INSERTED 1]
	// hello
	// <nil>
}

func TestCloseEndsAClientThatWaitsWithItsNextCommandSent(t *testing.T) {
	for name, faults := range map[string]broker.Faults{"in a reserve": {}, "in a stall": {Stall: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := broker.New(broker.Options{})
				b.Fail(faults)
				here, there := net.Pipe()
				served := make(chan struct{})
				go func() {
					defer close(served)
					b.ServeConn(t.Context(), there)
				}()
				if _, err := io.WriteString(here, "reserve\r\nlist-tubes\r\n"); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				b.Close()
				<-served // else the bubble is deadlocked, which fails the test
			})
		})
	}
}
