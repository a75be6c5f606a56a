//go:build !unix

package swarm

import (
	"errors"
	"os"
	"os/exec"
)

// supported says why there can be no swarm here; nil if there can.
func supported() error {
	return errors.New("swarm: child processes need inherited pipes and shared memory, which this operating system does not have: run everything in one process, without children")
}

func handDown(*exec.Cmd, *os.File, *os.File, *os.File) {}

func inherit() (guard, status, board *os.File, err error) { return nil, nil, nil, supported() }

func boardFile(int) (*os.File, error) { return nil, supported() }

func share(*os.File, int, bool) ([]byte, error) { return nil, supported() }

func unshare([]byte) error { return nil }

func signalName(*os.ProcessState) string { return "" }
