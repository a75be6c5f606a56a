package app

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/postburner/postburner/broker/brokertest"
)

// A deployment moves a symbolic link to a new release; a rolling restart starts that one.
func TestARollingRestartFollowsASymbolicLink(t *testing.T) {
	t.Parallel()
	installed, err := exec.LookPath("goworker")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(installed)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	current := filepath.Join(dir, "goworker")
	deploy := func(release string) (path string) {
		path = filepath.Join(dir, release)
		if err := os.WriteFile(path, program, 0o755); err != nil {
			t.Fatal(err)
		}
		fresh := filepath.Join(dir, "fresh")
		if err := os.Symlink(path, fresh); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(fresh, current); err != nil {
			t.Fatal(err)
		}
		return path
	}
	first := deploy("release-1")
	server := brokertest.Start(t)
	p := start(t, workerOn(server, "forks: 1, threads: 1"), current, "work")
	p.says(1, "child is ready")
	runs(t, p, first)
	second := deploy("release-2")
	p.signal(syscall.SIGUSR1)
	p.says(1, "rolling restart is done")
	runs(t, p, second)
	p.signal(syscall.SIGTERM)
	p.ends(ExitOK)
}

// runs wants the only child of a process to run a program.
func runs(t *testing.T, p *process, want string) {
	t.Helper()
	children := p.children()
	if len(children) != 1 {
		t.Fatalf("children %v, want one", children)
	}
	got, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", children[0]))
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("the child runs %s, want %s", got, want)
	}
}

func TestTheProgramIsFoundWhateverItIsCalled(t *testing.T) {
	t.Parallel()
	actual, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := executable(); err != nil || !sameFile(got, actual) {
		t.Errorf("executable() = %q, %v; want %q", got, err, actual)
	}
	for name, want := range map[string]bool{"no-such-program": false, "goworker": true, actual: true} {
		if _, ok := calledAs(name); ok != want {
			t.Errorf("calledAs(%q) is found: %v, want %v", name, ok, want)
		}
	}
	gone := filepath.Join(t.TempDir(), "gone")
	if sameFile(actual, gone) || sameFile(gone, actual) {
		t.Error("a file that is not there is the same as one that is")
	}
}
