package app

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
)

// executable returns the path by which this program is started again. It is the one by
// which it was called, if that leads here: where a deployment moves a symbolic link to
// a new release, children started later are then of that release.
func executable() (string, error) {
	actual, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	if called, ok := calledAs(os.Args[0]); ok && sameFile(called, actual) {
		return called, nil
	}
	return actual, nil
}

// ownImage leads to the program that runs, on Linux even when its file has been deleted.
const ownImage = "/proc/self/exe"

// present returns the path, or, while a deployment has taken the file away, what leads to
// the program that runs: without it a fleet that is recycled would dwindle to nothing.
func present(path string, logger *slog.Logger) string {
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if _, err := os.Stat(ownImage); err != nil {
		return path // the spawn will say what is wrong
	}
	logger.Warn("the program is gone from where it was; children are started from the one that runs", "path", path)
	return ownImage
}

func calledAs(name string) (path string, ok bool) {
	found, err := exec.LookPath(name)
	if err != nil {
		return "", false
	}
	path, err = filepath.Abs(found)
	return path, err == nil
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}
