//go:build unix

package swarm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// parentEnds are what a parent holds of a child that is played in this process.
type parentEnds struct {
	guard, status *os.File
	child         *Child
}

// adopt joins with pipes of its own, first being what the parent says first.
func adopt(t *testing.T, first string) (parentEnds, error) {
	t.Helper()
	guardRead, guard, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	status, statusWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	board, err := boardFile(2 * rowSize)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := guard.WriteString(first); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, file := range []*os.File{guard, guardRead, status, statusWrite, board} {
			_ = file.Close() // some are closed already
		}
	})
	if !strings.HasSuffix(first, "\n") { // the parent dies
		_ = guard.Close()
	}
	child, err := join(guardRead, statusWrite, board, func(int) {})
	if err == nil {
		t.Cleanup(func() {
			_ = guard.Close()
			<-child.orphaned
			if err := unshare(child.Board.memory); err != nil {
				t.Error(err)
			}
		})
	}
	return parentEnds{guard, status, child}, err
}

const handshakeLine = `{"slot":3,"threads":2,"shutdown_timeout_ns":3600000000000,"config":"YWJj"}` + "\n"

// live runs the child until the test ends.
func (p parentEnds) live(t *testing.T, heartbeat func() Heartbeat, stop, quiet func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.child.Run(ctx, Controls{Heartbeat: heartbeat, Stop: stop, Quiet: quiet}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func (p parentEnds) read(t *testing.T, lines *bufio.Reader) (m message) {
	t.Helper()
	if err := p.status.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	line, err := lines.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &m)
	}
	if err != nil {
		t.Fatalf("read %q from the child: %v", line, err)
	}
	return m
}

func TestAChildSaysHelloThenReadyOnceAllAreConnected(t *testing.T) {
	t.Parallel()
	p, err := adopt(t, handshakeLine)
	if err != nil {
		t.Fatal(err)
	}
	if p.child.Slot != 3 || string(p.child.Config) != "abc" || p.child.Quiet {
		t.Errorf("joined as %+v, want slot 3 with abc, not quiet", p.child)
	}
	var connected atomic.Int64
	p.live(t, func() Heartbeat { return Heartbeat{Threads: 2, Connected: int(connected.Load())} }, func() {}, func() {})
	lines := bufio.NewReader(p.status)
	if m := p.read(t, lines); m.Ready {
		t.Errorf("the first message is %+v, want it not ready", m)
	}
	connected.Store(1)
	if m := p.read(t, lines); m.Ready {
		t.Errorf("with one consumer of two it says %+v, want it not ready", m)
	}
	connected.Store(2)
	for !p.read(t, lines).Ready {
	}
	connected.Store(0) // the server goes away: that was known to be ready, and it stays so
	for m := p.read(t, lines); m.Connected > 0 || !m.Ready; m = p.read(t, lines) {
		if !m.Ready {
			t.Fatalf("it says %+v, want it ready for good", m)
		}
	}
}

func TestAQuietChildIsReadyWithoutConnections(t *testing.T) {
	t.Parallel()
	p, err := adopt(t, strings.Replace(handshakeLine, `"threads"`, `"quiet":true,"threads"`, 1))
	if err != nil {
		t.Fatal(err)
	}
	var quiet atomic.Bool
	p.live(t, func() Heartbeat { return Heartbeat{Threads: 2, Quiet: quiet.Load()} }, func() {}, func() { quiet.Store(true) })
	if m := p.read(t, bufio.NewReader(p.status)); !m.Ready || !p.child.Quiet {
		t.Errorf("it says %+v (quiet %v), want it ready and quiet", m, p.child.Quiet)
	}
}

// A parent that is stopped reads nothing. The child works on, follows commands, and says what was lost as soon as it is heard again.
func TestAParentThatDoesNotReadHoldsUpNothing(t *testing.T) {
	t.Parallel()
	p, err := adopt(t, handshakeLine)
	if err != nil {
		t.Fatal(err)
	}
	junk := strings.Repeat("x", 4095) + "\n"
	filled := 0
	for err == nil {
		if err = p.child.status.SetWriteDeadline(time.Now().Add(10 * time.Millisecond)); err == nil {
			_, err = p.child.status.WriteString(junk)
			filled++
		}
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("fill the pipe: %v", err)
	}
	quiet, stopped := make(chan struct{}), make(chan struct{})
	p.live(t, func() Heartbeat { return Heartbeat{Threads: 2, Connected: 2, Started: 5} }, func() { close(stopped) }, func() { close(quiet) })
	p.child.Recycling()
	p.child.Stuck()
	if _, err := p.guard.WriteString("of a later version\nquiet\n"); err != nil {
		t.Fatal(err)
	}
	wait := func(what string, c <-chan struct{}) {
		t.Helper()
		select {
		case <-c:
		case <-time.After(patience):
			t.Fatalf("the child was not told to %s", what)
		}
	}
	wait("be quiet", quiet)
	lines := bufio.NewReader(p.status)
	for m := (message{}); !m.Recycling || !m.Stuck || !m.Ready || m.Started != 5; {
		if err := p.status.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		line, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatalf("the child is not heard again: %v", err)
		}
		_ = json.Unmarshal(line, &m) // the filling is no message
	}
	if err := p.guard.Close(); err != nil {
		t.Fatal(err)
	}
	wait("stop", stopped)
}

func TestAParentThatIsGoneIsNoError(t *testing.T) {
	t.Parallel()
	p, err := adopt(t, handshakeLine)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.status.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := p.guard.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.child.Run(ctx, Controls{Heartbeat: func() Heartbeat { return Heartbeat{} }, Stop: cancel, Quiet: func() {}}); err != nil {
		t.Errorf("Run returned %v, want nil", err)
	}
}

func TestJoinSaysWhatIsWrongWithTheParent(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, first, want string }{
		{"it died before it sent the configuration", `{"slot":1,"thr`, "read the configuration"},
		{"it sent something else", "hello\n", "read the configuration"},
		{"the board is too small", strings.Replace(handshakeLine, `"threads":2`, `"threads":3`, 1), "map the board"},
		{"it has no consumers", strings.Replace(handshakeLine, `"threads":2`, `"threads":0`, 1), "map the board"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if _, err := adopt(t, test.first); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one that says %q", err, test.want)
			}
		})
	}
}
