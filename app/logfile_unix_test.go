//go:build unix

package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/postburner/postburner/broker/brokertest"
)

func TestALogFileIsRotatedUnderLoadAndNoLineIsLostOrTorn(t *testing.T) {
	t.Parallel()
	forksOf(t, func(t *testing.T, forks int) {
		const jobs, rotations = 600, 5
		server := brokertest.Start(t)
		log := filepath.Join(t.TempDir(), "postburner.log")
		p := start(t, workerOn(server, fmt.Sprintf("forks: %d, threads: 3", forks), fmt.Sprintf("  log: {file: %q, format: json}\n", log)), "goworker", "work")
		lines := func() (all []string) {
			for i := range rotations + 1 {
				name := log
				if i > 0 {
					name = fmt.Sprint(log, ".", i)
				}
				text, err := os.ReadFile(name)
				if err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
				for line := range bytes.Lines(text) {
					all = append(all, string(line))
				}
			}
			return all
		}
		count := func(text string) (n int) {
			for _, line := range lines() {
				if strings.Contains(line, text) {
					n++
				}
			}
			return n
		}
		if forks > 0 {
			eventually(t.Fatalf, func() (bool, string) { return count(`"child started"`) == forks, "the children have not been started" })
		} else {
			eventually(t.Fatalf, func() (bool, string) { return count(`"worker starts"`) == 1, "the worker has not started" })
		}
		for i := 1; i <= rotations; i++ {
			for range jobs / rotations {
				put(t, server, "Greet")
			}
			if err := os.Rename(log, fmt.Sprint(log, ".", i)); err != nil {
				t.Fatal(err)
			}
			p.signal(syscall.SIGUSR2)
			want := i * (forks + 1) // the parent, and each child
			eventually(t.Fatalf, func() (bool, string) {
				n := count("log file opened anew")
				return n == want, fmt.Sprintf("%d processes have opened the log anew, want %d", n, want)
			})
		}
		holds(t, server, "all", 0)
		p.signal(syscall.SIGTERM)
		p.ends(ExitOK)
		if n := count("hello from Go"); n != jobs {
			t.Errorf("the logs have %d lines of the jobs, want %d", n, jobs)
		}
		for _, line := range lines() {
			if !strings.HasSuffix(line, "\n") || !json.Valid([]byte(line)) {
				t.Errorf("torn: %q", line)
			}
		}
		if p.text() != "" {
			t.Errorf("standard error has %q", p.text())
		}
	})
}

func TestALogFileThatCannotBeOpenedIsAnErrorAtTheStartAndAWarningLater(t *testing.T) {
	t.Parallel()
	server := brokertest.Start(t)
	p := start(t, workerOn(server, "forks: 1, threads: 1", "  log: {file: missing/postburner.log}\n"), "goworker", "work")
	p.ends(ExitFailure)
	p.says(1, "open the log file (log.file): open missing/postburner.log")

	dir := filepath.Join(t.TempDir(), "log")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	p = start(t, workerOn(server, "forks: 0, threads: 1", fmt.Sprintf("  log: {file: %q}\n", dir+"/postburner.log")), "goworker", "work")
	read := func(dir string) string {
		text, err := os.ReadFile(dir + "/postburner.log")
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return string(text)
	}
	eventually(t.Fatalf, func() (bool, string) { return strings.Contains(read(dir), "worker starts"), read(dir) })
	moved := dir + ".moved"
	if err := os.Rename(dir, moved); err != nil {
		t.Fatal(err)
	}
	p.signal(syscall.SIGUSR2)
	eventually(t.Fatalf, func() (bool, string) {
		return strings.Contains(read(moved), "the old one is written on"), read(moved)
	})
	p.signal(syscall.SIGTERM)
	p.ends(ExitOK)
}
