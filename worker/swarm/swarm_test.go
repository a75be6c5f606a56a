//go:build unix

package swarm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestChildrenGetWhatIsTheirs(t *testing.T) {
	t.Parallel()
	extra := []byte("line\nline\x00\xff{}")
	r := run(t, 2, always(part{Role: working, Extra: extra}), func(o *Options) {
		o.Command = func(int) (*exec.Cmd, error) {
			cmd, err := command(0)
			cmd.Env = append(cmd.Env, "GOMAXPROCS=3")
			cmd.ExtraFiles = []*os.File{os.Stderr} // the swarm's come behind
			return cmd, err
		}
	})
	for slot, pid := range r.settled() {
		f := r.facts(pid)
		if f.Slot != slot || f.PID != pid {
			t.Errorf("child %d says slot %d, pid %d; want slot %d", pid, f.Slot, f.PID, slot)
		}
		if !bytes.Equal(f.Extra, extra) {
			t.Errorf("configuration arrived as %q, want %q", f.Extra, extra)
		}
		if f.Group != pid {
			t.Errorf("child %d is in process group %d, want its own", pid, f.Group)
		}
		if f.Stdin != "0 EOF" {
			t.Errorf("reading stdin gives %q, want the end of the file", f.Stdin)
		}
		if want := []string{"3"}; !slices.Equal(f.Inherited, want) {
			t.Errorf("programs that the child starts would inherit %v, want what the command asked for, %v", f.Inherited, want)
		}
		if f.MaxProcs != "3" {
			t.Errorf("GOMAXPROCS is %q, want the command's own", f.MaxProcs)
		}
		if f.Variable != "" {
			t.Errorf("%s=%s is left in the environment", filesVariable, f.Variable)
		}
	}
	r.end()
}

func TestStatusShowsEachChild(t *testing.T) {
	t.Parallel()
	r := run(t, 1, always(part{Role: working, Jobs: 7}), func(o *Options) { o.MemoryCheck = 10 * time.Millisecond })
	r.settled()
	eventually(t, func() (bool, string) {
		status := r.swarm.Status()
		c := status.Slots[0].Children[0]
		text, err := json.Marshal(status)
		ok := err == nil && c.PID > 0 && c.State == StateReady && c.Heartbeat.Started == 7 && c.Heartbeat.Connected == 2 && !c.Since.IsZero() &&
			len(c.Running) == 1 && c.Running[0].ID == 42 && c.Running[0].Kind == "SendEmail" && c.Running[0].Consumer == 1 &&
			status.Total.Started == 7 && status.Total.Connected == 2
		return ok, string(text)
	})
	if _, err := residentMemory(os.Getpid()); err == nil {
		eventually(t, func() (bool, string) {
			rss := r.swarm.Status().Slots[0].Children[0].RSS
			return rss > 1<<20, "RSS is not known"
		})
	}
	r.end()
	if total := r.swarm.Status().Total; total.Started != 7 || total.Connected != 0 {
		t.Errorf("after the end the total is %+v, want 7 started and nobody connected", total)
	}
}

func TestAKilledChildIsReportedWithWhatItRanAndReplaced(t *testing.T) {
	t.Parallel()
	r := run(t, 2, always(part{Role: busy}), nil)
	pids := r.settled()
	send(t, pids[0], syscall.SIGKILL)
	e := r.await(EventExited, 1)[0]
	if e.Slot != 0 || e.PID != pids[0] || e.Exit.Signal != "SIGKILL" || e.Wait != quick.Base {
		t.Errorf("exit event %+v, want slot 0, pid %d, SIGKILL, wait %v", e, pids[0], quick.Base)
	}
	if len(e.Exit.Running) != 2 || e.Exit.Running[0].Kind != "Report" || e.Exit.Running[1].ID != 42 {
		t.Errorf("it ran %v, want jobs 43 (Report) and 42", e.Exit.Running)
	}
	var lines []string
	for line := range strings.Lines(r.log.String()) {
		if strings.Contains(line, "child died") {
			lines = append(lines, line)
		}
	}
	if len(lines) != 1 {
		t.Fatalf("the death is logged %d times, want once: %q", len(lines), lines)
	}
	for _, want := range []string{"level=ERROR", "SIGKILL", "OOM", "Report (job 43)", "SendEmail (job 42)", "slot=0"} {
		if !strings.Contains(lines[0], want) {
			t.Errorf("the log line does not say %q: %s", want, lines[0])
		}
	}
	now := r.settled()
	if now[0] == pids[0] || now[1] != pids[1] {
		t.Errorf("children were %v and are %v, want only the first replaced", pids, now)
	}
	r.openGate()
	r.end()
}

func TestChildrenThatKeepEndingAreReplacedAfterGrowingWaits(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		code int
	}{
		{"exit code 3", 3},
		{"exit code 0, which nobody asked for", 0},
		{"99 without having done a job", ExitRecycled},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := run(t, 1, always(part{Role: leaving, Code: test.code}), nil)
			for i, e := range r.await(EventExited, 6)[:6] {
				if want := quick.Delay(i + 1); e.Wait != want || e.Exit.Code != test.code {
					t.Errorf("exit %d: code %d, wait %v; want code %d, wait %v", i, e.Exit.Code, e.Wait, test.code, want)
				}
			}
			r.end()
		})
	}
}

func TestASlotSurvivesFailedSpawns(t *testing.T) {
	t.Parallel()
	const failures = 4
	tries := 0 // Command is called by one goroutine at a time, each started after the one before has ended
	r := run(t, 1, always(part{Role: working}), func(o *Options) {
		o.Command = func(slot int) (*exec.Cmd, error) {
			tries++
			switch tries {
			case 1:
				return nil, errors.New("no command today")
			case 2:
				return exec.Command("/does/not/exist"), nil
			case 3:
				return exec.Command(t.TempDir()), nil // not a program
			case 4:
				cmd, err := command(slot)
				cmd.Dir = "/does/not/exist"
				return cmd, err
			}
			return command(slot)
		}
	})
	r.settled()
	events := r.seen(EventSpawnFailed)
	if len(events) != failures {
		t.Fatalf("%d failed spawns were told, want %d", len(events), failures)
	}
	for i, e := range events {
		if want := quick.Delay(i + 1); e.Wait != want || e.Err == nil {
			t.Errorf("failed spawn %d: wait %v, error %v; want wait %v and an error", i, e.Wait, e.Err, want)
		}
	}
	r.end()
}

func TestAChildThatNeverSaysHelloIsKilledAndItsSlotGoesOn(t *testing.T) {
	t.Parallel()
	r := run(t, 1, first(part{Role: hanging}, part{Role: working}), func(o *Options) { o.BootTimeout = 3 * time.Second })
	hung := r.await(EventSpawned, 1)[0].PID
	if e := r.await(EventKilled, 1)[0]; e.PID != hung || !strings.Contains(e.Reason, "boot timeout") {
		t.Errorf("killed: %+v, want child %d because of its boot timeout", e, hung)
	}
	r.settled()
	r.end()
}

func TestAStoppedProcessIsKilledAndItsSlotGoesOn(t *testing.T) {
	t.Parallel()
	r := run(t, 1, always(part{Role: working}), func(o *Options) { o.LivenessTimeout = 4 * time.Second })
	pid := r.settled()[0]
	send(t, pid, syscall.SIGSTOP)
	eventually(t, func() (bool, string) {
		for _, e := range r.seen(EventKilled) {
			if e.PID == pid && strings.Contains(e.Reason, "liveness timeout") {
				return true, ""
			}
		}
		return false, "the stopped child is not killed"
	})
	eventually(t, func() (bool, string) { return !exists(pid), "it still exists" })
	r.settled()
	r.end()
}

func TestQuietReachesChildrenNowAndLater(t *testing.T) {
	t.Parallel()
	r := run(t, 1, always(part{Role: working}), nil)
	pid := r.settled()[0]
	r.swarm.Quiet()
	isQuiet := func() (bool, string) {
		status := r.swarm.Status()
		return status.Quiet && len(status.Slots[0].Children) == 1 && status.Slots[0].Children[0].Heartbeat.Quiet, "the child is not quiet"
	}
	eventually(t, isQuiet)
	if r.facts(pid).Quiet {
		t.Error("the first child says that it started quiet")
	}
	send(t, pid, syscall.SIGKILL)
	r.await(EventExited, 1)
	later := r.settled()[0]
	if !r.facts(later).Quiet {
		t.Error("the later child did not start quiet")
	}
	eventually(t, isQuiet)
	r.end()
}

func TestAChildWithoutItsServerIsLeftAlone(t *testing.T) {
	t.Parallel()
	pulses := make(chan struct{}) // each is a look of the swarm at its children
	r := run(t, 1, always(part{Role: unready}), func(o *Options) {
		o.ReadyTimeout = 10 * time.Millisecond
		o.Pulse = func() {
			select {
			case pulses <- struct{}{}:
			default: // the test does not wait for one
			}
		}
	})
	pid := r.await(EventHello, 1)[0].PID
	for range 3 { // they are a second apart
		<-pulses
	}
	status := r.swarm.Status().Slots[0]
	if len(status.Children) != 1 || status.Children[0].PID != pid || status.Children[0].State != StateUp {
		t.Errorf("slot is %+v, want child %d up", status, pid)
	}
	r.end()
}

func TestNonsenseFromAChildIsIgnored(t *testing.T) {
	t.Parallel()
	r := run(t, 1, always(part{Role: babbling}), nil)
	r.settled()
	if n := strings.Count(r.log.String(), "no message"); n != 1 {
		t.Errorf("nonsense is logged %d times, want once", n)
	}
	r.end()
}

// A program that a child leaves behind holds the child's output open. That must not hold up the slot.
func TestAProcessLeftBehindDoesNotHoldUpTheSlot(t *testing.T) {
	t.Parallel()
	var output bytes.Buffer
	r := run(t, 1, first(part{Role: parting, Code: 3}, part{Role: working}), func(o *Options) {
		firstOne := true
		o.Command = func(slot int) (*exec.Cmd, error) {
			cmd, err := command(slot)
			if firstOne {
				cmd.Stdout, firstOne = &output, false
			}
			return cmd, err
		}
	})
	pid := r.await(EventSpawned, 1)[0].PID
	left := r.facts(pid).Left
	t.Cleanup(func() { send(t, left, syscall.SIGKILL) })
	if e := r.await(EventExited, 1)[0]; e.PID != pid || e.Exit.Code != 3 {
		t.Errorf("exit event %+v, want child %d with code 3", e, pid)
	}
	r.settled()
	r.end()
}

func TestAnObserverMayPanicAndMayCallTheSwarm(t *testing.T) {
	t.Parallel()
	var r *trial
	r = prepare(t, 1, always(part{Role: working}), func(o *Options) {
		o.Observer = func(e Event) {
			r.observe(e)
			if e.Type == EventReady {
				r.swarm.Status()
				r.swarm.Kill()
			}
			panic("observer of " + string(e.Type))
		}
	})
	r.start()
	r.finish()
	if !strings.Contains(r.log.String(), "observer of ready") {
		t.Error("the panic is not in the log")
	}
}

func TestRunIsForOnce(t *testing.T) {
	t.Parallel()
	r := run(t, 1, always(part{Role: working}), nil)
	r.settled()
	if err := r.swarm.Run(context.Background()); err == nil {
		t.Error("a second Run gives no error")
	}
	r.end()
}

func TestJoinOutsideAChildSaysWhatToDo(t *testing.T) {
	t.Parallel()
	if _, err := Join(); !errors.Is(err, errNoChild) {
		t.Errorf("error %v, want %v", err, errNoChild)
	}
}

func TestBoardFilesHaveNoName(t *testing.T) {
	t.Parallel()
	file, err := unnamedFile(4096)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if _, err := os.Stat(file.Name()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", filepath.Base(file.Name()), err)
	}
	if info, err := file.Stat(); err != nil || info.Size() != 4096 {
		t.Errorf("size %v, %v; want 4096", info, err)
	}
}
