//go:build unix

package integration_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// openFiles counts the descriptors of a process.
func openFiles(t testing.TB, pid int) int {
	t.Helper()
	if files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid)); err == nil {
		return len(files)
	}
	out, err := exec.Command("lsof", "-p", fmt.Sprint(pid)).Output()
	if err != nil {
		t.Fatalf("count the open files of %d: neither /proc nor lsof: %v", pid, err)
	}
	return strings.Count(string(out), "\n")
}

// freeze stops a process (SIGSTOP) while f runs.
func freeze(t testing.TB, pid int, f func()) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Errorf("wake process %d: %v", pid, err)
		}
	}()
	f()
}
