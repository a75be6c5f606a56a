//go:build unix

package integration_test

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/postburner/postburner/internal/testwait"
)

// workerOptions are the settings of postburner.yml that a test cares about.
type workerOptions struct {
	Program string // worker (default) or stock
	URL     string
	Forks   int
	Threads int
	Keys    string // more lines of the worker, each "key: value"
	Top     string // more lines of the environment
	Args    []string
	Binary  string // another copy of the test binary
}

// workerProcess is a running `postburner work` with its log and journal.
type workerProcess struct {
	t       testing.TB
	cmd     *exec.Cmd
	dir     string
	journal string
	log     *testwait.Log
	exited  chan struct{} // closed after Wait
	err     error         // of Wait, once exited is closed
}

const (
	environment = "production"
	tube        = "postburner.production.default"
	watchTube   = "postburner.production.scheduler"
)

// startWorker starts a worker of its own folder. Whatever of it is left at the end of the test is killed.
func startWorker(t testing.TB, o workerOptions) *workerProcess {
	t.Helper()
	dir := t.TempDir()
	if o.Program == "" {
		o.Program = "worker"
	}
	file := filepath.Join(dir, "postburner.yml")
	yml := fmt.Sprintf("%s:\n  beanstalk_url: %s\n%s  workers:\n    default:\n      queues: [default]\n      forks: %d\n      threads: %d\n%s",
		environment, o.URL, indent("  ", o.Top), o.Forks, o.Threads, indent("      ", o.Keys))
	if err := os.WriteFile(file, []byte(yml), 0o600); err != nil {
		t.Fatal(err)
	}
	w := &workerProcess{t: t, dir: dir, journal: filepath.Join(dir, "journal"), log: &testwait.Log{}, exited: make(chan struct{})}
	w.cmd = exec.Command(cmp.Or(o.Binary, os.Args[0]), append([]string{"work", "--config", file, "--env", environment, "--worker", "default"}, o.Args...)...)
	w.cmd.Env = append(os.Environ(), programVariable+"="+o.Program, journalVariable+"="+w.journal)
	w.cmd.Dir = dir
	w.cmd.Stdout, w.cmd.Stderr = w.log, w.log
	w.cmd.WaitDelay = 5 * time.Second
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		w.err = w.cmd.Wait()
		close(w.exited)
	}()
	t.Cleanup(func() {
		children := w.children()
		_ = w.cmd.Process.Kill() // gone already is fine
		<-w.exited
		for _, pid := range children {
			_ = syscall.Kill(pid, syscall.SIGKILL) // gone already is fine
		}
		if t.Failed() {
			t.Logf("log of the worker:\n%s", tail(w.log.String(), 200))
		}
	})
	return w
}

func indent(by, lines string) string {
	var b strings.Builder
	for line := range strings.Lines(lines) {
		b.WriteString(by + strings.TrimRight(line, "\n") + "\n")
	}
	return b.String()
}

func (w *workerProcess) pid() int { return w.cmd.Process.Pid }

func (w *workerProcess) signal(sig syscall.Signal) {
	w.t.Helper()
	if err := w.cmd.Process.Signal(sig); err != nil {
		w.t.Fatalf("send %v to the worker: %v", sig, err)
	}
}

// wait returns the exit code once the worker has ended.
func (w *workerProcess) wait() int {
	w.t.Helper()
	select {
	case <-w.exited:
	case <-time.After(testwait.Patience):
		w.t.Fatalf("the worker did not end within %v", testwait.Patience)
	}
	return w.cmd.ProcessState.ExitCode()
}

// stop asks the worker to end and wants exit code 0.
func (w *workerProcess) stop() {
	w.t.Helper()
	w.signal(syscall.SIGTERM)
	if code := w.wait(); code != 0 {
		w.t.Fatalf("after TERM the worker exited with %d, want 0", code)
	}
}

// children returns the pids of the worker's living child processes.
func (w *workerProcess) children() []int {
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=,stat=").Output()
	if err != nil {
		w.t.Errorf("ps: %v", err)
		return nil
	}
	var pids []int
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[1] == strconv.Itoa(w.pid()) && !strings.HasPrefix(fields[2], "Z") {
			pid, err := strconv.Atoi(fields[0])
			if err != nil {
				w.t.Errorf("ps answered %q: %v", line, err)
				continue
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

// entries returns the journal's entries of one event so far, all for "".
func (w *workerProcess) entries(event string) []entry {
	w.t.Helper()
	return readJournal(w.t, w.journal, event)
}

// gate returns the path of a file that does not exist yet and a func that makes it.
func (w *workerProcess) gate(name string) (path string, open func()) {
	path = filepath.Join(w.dir, name)
	return path, func() {
		w.t.Helper()
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
}

// consuming waits until n consumers watch the tube.
func (w *workerProcess) consuming(c *rawClient, n int) {
	w.t.Helper()
	testwait.Until(w.t, func() (bool, string) {
		got := c.count(tube, "current-watching")
		return got == n, fmt.Sprintf("%d consumers watch %s, want %d", got, tube, n)
	})
}

// tail returns the last n lines.
func tail(text string, n int) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
