//go:build !unix

package swarm

import (
	"errors"
	"os"
	"os/exec"
)

// supported says why there can be no swarm here; nil if there can.
func supported() error {
	return errors.New("swarm: child processes need inherited pipes and shared memory, which this operating system does not have: use forks: 0, all in one process")
}

func detach(*exec.Cmd) {}

func signalName(*os.ProcessState) string { return "" }

func share(*os.File, int) ([]byte, error) { return nil, supported() }

func unshare([]byte) error { return nil }

func inherit(int) (guard, status *os.File, memory []byte, err error) {
	return nil, nil, nil, supported()
}
