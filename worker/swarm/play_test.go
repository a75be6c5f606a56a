//go:build unix

package swarm

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// playVariable makes the test binary play a child or a parent instead of running tests.
const playVariable = "SWARM_TEST_PLAY"

func TestMain(m *testing.M) {
	switch os.Getenv(playVariable) {
	case "child":
		os.Exit(playChild())
	case "parent":
		os.Exit(playParent())
	}
	goleak.VerifyTestMain(m)
}

// part is what a child plays: its configuration.
type part struct {
	Dir   string // where it leaves a file of facts, and looks for the gate
	Role  string
	Code  int
	Jobs  uint64
	Bytes int
	Extra []byte
}

// The roles.
const (
	working   = "working"   // consumes, and ends when asked to
	busy      = "busy"      // likewise, but ends only when the gate file is there
	deaf      = "deaf"      // consumes, and ignores that it is asked to end
	hanging   = "hanging"   // never reports to the parent
	unready   = "unready"   // never gets connected
	leaving   = "leaving"   // consumes, then exits with Code
	recycling = "recycling" // consumes, announces it after Jobs jobs, exits with 99 when the gate file is there
	growing   = "growing"   // consumes, and takes Bytes of memory
	stuckOne  = "stuck"     // consumes, and says that a handler is stuck
	babbling  = "babbling"  // says things that are no messages, then consumes
	parting   = "parting"   // leaves a process behind that holds its output, then exits with Code
)

// facts are what a child finds out about itself.
type facts struct {
	PID, Group, Slot int
	Quiet            bool
	Extra            []byte
	Stdin            string   // what reading it says
	Inherited        []string // which of files 3 to 6 its own children would inherit
	MaxProcs         string
	Variable         string // what is left of the swarm's variable
	Left             int    // the pid of the process left behind
}

func (f facts) write(dir string) error {
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	name := filepath.Join(dir, strconv.Itoa(f.PID))
	if err := os.WriteFile(name+".part", text, 0o600); err != nil {
		return err
	}
	return os.Rename(name+".part", name+".json")
}

func gatePath(dir string) string { return filepath.Join(dir, "gate") }

// awaitGate waits for the gate file.
func awaitGate(dir string) {
	for range time.Tick(5 * time.Millisecond) {
		if _, err := os.Stat(gatePath(dir)); err == nil {
			return
		}
	}
}

func findFacts(c *Child, p part) (facts, error) {
	f := facts{
		PID: os.Getpid(), Group: unix.Getpgrp(), Slot: c.Slot, Quiet: c.Quiet, Extra: p.Extra,
		MaxProcs: os.Getenv("GOMAXPROCS"), Variable: os.Getenv(filesVariable),
	}
	n, err := os.Stdin.Read(make([]byte, 1))
	f.Stdin = fmt.Sprint(n, " ", err)
	for fd := 3; fd <= 6; fd++ {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			f.Inherited = append(f.Inherited, strconv.Itoa(fd))
		}
	}
	if p.Role == parting {
		sleeper := exec.Command("sleep", "600")
		sleeper.Stdout = os.Stdout
		if err := sleeper.Start(); err != nil {
			return f, err
		}
		f.Left = sleeper.Process.Pid
	}
	return f, f.write(p.Dir)
}

func playChild() int {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM)
	c, err := Join()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var p part
	err = json.Unmarshal(c.Config, &p)
	if err == nil {
		_, err = findFacts(c, p)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if p.Role == hanging {
		for range signals { // and goes on
		}
	}
	return play(c, p, signals)
}

// play is a child's life after Join.
func play(c *Child, p part, signals <-chan os.Signal) int {
	var quiet atomic.Bool
	heartbeat := func() Heartbeat {
		b := Heartbeat{Threads: 2, Connected: 2, Busy: 1, Started: p.Jobs, Quiet: quiet.Load()}
		if p.Role == unready {
			b.Connected = 1
		}
		return b
	}
	stopped := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	said := make(chan error, 1)
	if p.Role == babbling {
		if _, err := io.WriteString(c.status, "not json\n{\"ready\":7}\n"); err != nil {
			return 1
		}
	}
	c.Board.Start(1, 42, 420, "SendEmail", time.Now())
	if p.Role == busy || p.Role == deaf {
		c.Board.Start(0, 43, 430, "Report", time.Now())
	}
	go func() {
		said <- c.Run(ctx, Controls{Heartbeat: heartbeat, Stop: func() { close(stopped) }, Quiet: func() { quiet.Store(true) }})
	}()
	var memory []byte
	switch p.Role {
	case growing:
		memory = make([]byte, p.Bytes)
		for i := range memory {
			memory[i] = byte(i)
		}
	case stuckOne:
		c.Stuck()
	case recycling:
		c.Recycling()
	}
	code := 0
	end := func() {}
	switch p.Role {
	case deaf:
		end = func() { select {} }
	case busy:
		end = func() { awaitGate(p.Dir) }
	case recycling:
		awaitGate(p.Dir)
		stopped, code = closed(), ExitRecycled
	case leaving, parting:
		stopped, code = closed(), p.Code
	}
	select {
	case <-stopped:
	case <-signals:
	}
	end()
	cancel()
	if err := <-said; err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_ = memory // kept until here
	return code
}

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// command plays a child in a process.
func command(int) (*exec.Cmd, error) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), playVariable+"=child", "GORACE=atexit_sleep_ms=0") // else each takes a second to end
	return cmd, nil
}

// playParent keeps three children that play the role in the environment, until it is killed.
func playParent() int {
	p := part{Dir: os.Getenv("SWARM_TEST_DIR"), Role: os.Getenv("SWARM_TEST_ROLE")}
	s, err := New(Options{
		Forks: 3, Threads: 2, Command: command, ShutdownTimeout: time.Second,
		Config: func(int) ([]byte, error) { return json.Marshal(p) },
	})
	if err == nil {
		err = s.Run(context.Background())
	}
	fmt.Fprintln(os.Stderr, "a parent that was to be killed ended:", err)
	return 1
}
