package app

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// openTerminal returns both ends of a pseudo-terminal: what is written to one can be read from the other.
func openTerminal(t *testing.T) (master, terminal *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = master.Close() }) // closed by the test already, if that went well
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 120}); err != nil {
		t.Fatal(err)
	}
	return master, terminal
}

func TestATerminalShowsABarAndLinesAboveIt(t *testing.T) {
	t.Parallel()
	master, terminal := openTerminal(t)
	shown := make(chan string)
	go func() {
		var all bytes.Buffer
		_, _ = all.ReadFrom(master) // ends with an error when the other end is closed
		shown <- all.String()
	}()
	p := newProgress(terminal, "enqueued", 100)
	p.advance(60, 6)
	p.say("jobs.jsonl:%d: no job\n", 7)
	p.advance(40, 9)
	p.end()
	if err := terminal.Close(); err != nil {
		t.Fatal(err)
	}
	got := <-shown
	for _, want := range []string{"9 enqueued [", "100 %", "jobs.jsonl:7: no job"} {
		if !strings.Contains(got, want) {
			t.Errorf("the terminal shows %q, want %q in it", got, want)
		}
	}
}

func TestABarThatDoesNotComeToItsEndEnds(t *testing.T) {
	t.Parallel()
	master, terminal := openTerminal(t)
	go func() { _, _ = new(bytes.Buffer).ReadFrom(master) }() // ends when the other end is closed
	p := newProgress(terminal, "enqueued", 100)
	p.advance(60, 6)
	p.end()
	if err := terminal.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestATerminalWithoutAWidthIsShownLines(t *testing.T) {
	t.Parallel()
	_, terminal := openTerminal(t)
	if err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{}); err != nil {
		t.Fatal(err)
	}
	if p := newProgress(terminal, "enqueued", 100); p.bars != nil {
		t.Error("a bar is drawn where nobody can see it")
	}
	if err := terminal.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestElsewhereProgressIsLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := newProgress(&out, "enqueued", 100)
	p.advance(10, 1)
	p.shown = p.shown.Add(-statusEvery)
	p.advance(10, 2)
	p.advance(10, 3)
	p.say("done\n")
	p.end()
	if want := "2 enqueued\ndone\n"; out.String() != want {
		t.Errorf("output %q, want %q", out.String(), want)
	}
}
