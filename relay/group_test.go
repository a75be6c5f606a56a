//go:build unix

package relay_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/postburner/postburner/job"
)

const hasSignals = true

func TestTheEndOfTheContextIsTermForTheWholeGroup(t *testing.T) {
	t.Parallel()
	for name, program := range map[string]string{"the program": "wait", "a program that it started": "family"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "notes")
			end, ended := started(t, play(program, file, "3"), file)
			end(job.ErrShutdown)
			if err := result(t, ended); !errors.Is(err, job.ErrShutdown) {
				t.Errorf("error %v, want one that is the context's cause", err)
			}
			gone(t, leftBehind(t, file))
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			// What the program has started may be killed before it can write, once the program itself is gone.
			if program == "wait" && !strings.HasSuffix(string(text), "\ngot TERM\n") {
				t.Errorf("notes of the program are %q, want it to have got TERM", text)
			}
		})
	}
}

func TestAProgramThatFinishesItsJobAfterTermHasDoneIt(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "notes")
	end, ended := started(t, play("wait", file, "0"), file)
	end(job.ErrShutdown)
	if err := result(t, ended); err != nil {
		t.Errorf("error %v, want none: it exited with 0", err)
	}
}

func TestAProgramThatBuriesItsJobAfterTermIsHeard(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "notes")
	end, ended := started(t, play("wait", file, "65"), file)
	end(errors.New("time is over"))
	if v := job.VerdictOf(result(t, ended)); v.Action != job.ActionBury {
		t.Errorf("verdict %v, want to bury", v.Action)
	}
}

// leftBehind returns the pid that the program noted.
func leftBehind(t *testing.T, file string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(string(text), &pid); err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestAGrandchildThatHoldsTheOutputDoesNotHangTheJob(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "notes")
	e := play("leave", file, "0")
	e.KillAfter = 200 * time.Millisecond
	j, out := aJob(`[]`)
	if err := e.HandleJob(t.Context(), j); err != nil {
		t.Errorf("error %v, want none: the program exited with 0", err)
	}
	pid := leftBehind(t, file)
	if err := syscall.Kill(pid, 0); err != nil {
		t.Errorf("what a program that succeeded left running is gone: %v", err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	entries := out.entries(t)
	if len(entries) != 1 || !strings.Contains(entries[0].Msg, "holds its output open") {
		t.Errorf("log lines %+v, want one that tells of the output", entries)
	}
}

func TestWhatAFailedProgramLeavesIsKilled(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "notes")
	e := play("leave", file, "1")
	e.KillAfter = 200 * time.Millisecond
	j, _ := aJob(`[]`)
	if err := e.HandleJob(t.Context(), j); err == nil || !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("error %v, want the exit status", err)
	}
	gone(t, leftBehind(t, file))
}

// gone waits until the process is dead.
func gone(t *testing.T, pid int) {
	t.Helper()
	eventually(t, func() (bool, string) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err == nil && strings.Contains(string(stat), ") Z ") {
			return true, "" // dead, and whoever has become its parent does not care
		}
		return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH), fmt.Sprint("still alive: ", pid)
	})
}
