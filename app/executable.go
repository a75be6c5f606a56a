package app

import (
	"fmt"
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
