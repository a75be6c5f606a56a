package app

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/postburner/postburner/broker/brokertest"
)

// A pipe that is open and that nobody reads: the worker works on, stops, and says what was dropped once it is read again.
func TestALogThatNobodyReadsHoldsUpNothing(t *testing.T) {
	t.Parallel()
	forksOf(t, func(t *testing.T, forks int) {
		server := brokertest.Start(t)
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = read.Close() }() // at the end of the test
		dir := t.TempDir()
		yml := workerOn(server, fmt.Sprintf("forks: %d, threads: 2", forks), "  retry: {max_retries: 0}\n")
		if err := os.WriteFile(dir+"/postburner.yml", []byte(yml), 0o600); err != nil {
			t.Fatal(err)
		}
		path, err := exec.LookPath("goworker")
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(path, "work", "--log-format", "json")
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, write, write
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_ = write.Close() // the worker has its own
		exited := make(chan error, 1)
		go func() { exited <- cmd.Wait() }()
		t.Cleanup(func() { _ = cmd.Process.Kill() }) // gone already is fine
		const jobs = 400                             // each with some hundred bytes of log, for a pipe of 64 KiB
		for range jobs {
			put(t, server, "Crash")
		}
		holds(t, server, "buried", jobs)
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-exited:
			if err != nil {
				t.Errorf("the worker ended with %v", err)
			}
		case <-time.After(time.Minute):
			t.Fatal("the worker does not end")
		}
		text := make([]byte, 1<<20)
		n, err := read.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text[:n]), "worker starts") {
			t.Errorf("the log begins %.200q", text[:n])
		}
	})
}

func TestDroppedLinesAreCounted(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = read.Close(), write.Close() }() // at the end of the test
	w := patient(write)
	if _, ok := w.(*patientWriter); !ok {
		t.Fatalf("a pipe is written by %T", w)
	}
	line := []byte(strings.Repeat("x", 999) + "\n")
	lines := 0
	for ; w.(*patientWriter).dropped < 3; lines++ {
		if _, err := w.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	text := make([]byte, 1<<20)
	n, err := read.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(text[:n]), "\n"); got != lines-3 {
		t.Errorf("%d lines have come, want %d", got, lines-3)
	}
	if _, err := w.Write([]byte("next\n")); err != nil {
		t.Fatal(err)
	}
	n, err = read.Read(text)
	if got := string(text[:n]); err != nil || !strings.HasSuffix(got, "3 log lines of process "+fmt.Sprint(os.Getpid())+" were dropped, since nobody read them\nnext\n") {
		t.Errorf("then comes %q, %v", got, err)
	}
}
