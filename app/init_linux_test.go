package app

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/postburner/postburner/broker/brokertest"
	"github.com/postburner/postburner/job"
)

const belowInitVariable = "TEST_BELOW_INIT"

// playInit is goworker as PID 1 runs it, in a process with another number that inherits orphans all the same.
func playInit() {
	if os.Getenv(belowInitVariable) != "" {
		play(goHandlers())
	}
	if err := os.Setenv(belowInitVariable, "yes"); err != nil {
		panic(err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		panic(err)
	}
	p := &program{Options: Options{Args: os.Args[1:], Stderr: os.Stderr, Registry: job.NewRegistry()}}
	os.Exit(p.report(p.root(), p.runAsInit()))
}

// tree returns the pids of a process's children, with the zombies among them.
func tree(t *testing.T, parent int) (pids, zombies []int) {
	t.Helper()
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=,stat=").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		var pid, of int
		var stat string
		if _, err := fmt.Sscan(line, &pid, &of, &stat); err != nil || of != parent {
			continue
		}
		pids = append(pids, pid)
		if stat[0] == 'Z' {
			zombies = append(zombies, pid)
		}
	}
	return pids, zombies
}

func TestPID1ReapsOrphansAndNobodyElse(t *testing.T) {
	t.Parallel()
	for name, command := range map[string][]string{
		"as a subreaper":         {"goinit"},
		"first of its namespace": {"unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "goworker"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if command[0] == "unshare" {
				if out, err := exec.Command("unshare", "--pid", "--fork", "--mount-proc", "true").CombinedOutput(); err != nil {
					t.Skipf("this machine lets nobody make a PID namespace: %v: %s", err, out)
				}
			}
			const orphans = 100
			server := brokertest.Start(t)
			journal := filepath.Join(t.TempDir(), "journal")
			handler := fmt.Sprintf("  handlers: {Orphan: {exec: [sh, -c, 'setsid sh -c \"sleep 0.3; echo done >> %s\" > /dev/null 2>&1 &']}}\n", journal)
			p := start(t, workerOn(server, "forks: 2, threads: 2", handler), command[0], append(command[1:], "work")...)
			p.says(2, "child started")
			first := p.cmd.Process.Pid
			if command[0] == "unshare" {
				below, _ := tree(t, first)
				first = below[0]
			}
			below, _ := tree(t, first)
			parent := below[0]
			for range orphans {
				put(t, server, "Orphan")
			}
			holds(t, server, "all", 0)
			eventually(t.Fatalf, func() (bool, string) {
				text, err := os.ReadFile(journal)
				n := strings.Count(string(text), "done")
				return n == orphans, fmt.Sprintf("%d orphans have ended, want %d (%v)", n, orphans, err)
			})
			eventually(t.Fatalf, func() (bool, string) {
				pids, zombies := tree(t, first)
				return slices.Equal(pids, []int{parent}), fmt.Sprintf("below PID 1 are %v, of them zombies %v; want the worker %d alone", pids, zombies, parent)
			})
			children, _ := tree(t, parent)
			if err := syscall.Kill(children[0], syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			p.says(1, "signal=SIGKILL")
			if err := syscall.Kill(first, syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			p.ends(ExitOK)
			if log := p.text(); strings.Count(log, "stopping: running jobs finish") != 1 {
				t.Error("TERM was not passed on just once")
			}
		})
	}
}

func TestPID1ExitsAsTheWorkerDoes(t *testing.T) {
	t.Parallel()
	server := brokertest.Start(t)
	p := start(t, workerOn(server, "forks: two"), "goinit", "work")
	p.ends(ExitConfig)
	p = start(t, workerOn(server, "forks: 1, threads: 1"), "goinit", "work")
	p.says(1, "child started")
	below, _ := tree(t, p.cmd.Process.Pid)
	if err := syscall.Kill(below[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.ends(128 + int(syscall.SIGKILL))
	p.says(1, "the worker below PID 1 was killed")
}
