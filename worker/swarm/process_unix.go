//go:build unix

package swarm

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// The numbers under which a child finds what it inherits: exec puts ExtraFiles behind the standard three.
const (
	guardFD = 3 + iota
	statusFD
	boardFD
)

// supported says why there can be no swarm here; nil if there can.
func supported() error { return nil }

// detach gives a child a process group of its own, so that what a terminal sends reaches the parent alone.
func detach(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
}

func signalName(state *os.ProcessState) string {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return ""
	}
	return unix.SignalName(status.Signal())
}

func share(file *os.File, size int) ([]byte, error) {
	memory, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the board: %w", err)
	}
	return memory, nil
}

func unshare(memory []byte) error { return unix.Munmap(memory) }

// inherit takes up what the parent handed down. None of it is passed on to programs that the child starts.
func inherit(threads int) (guard, status *os.File, memory []byte, err error) {
	for fd := guardFD; fd <= boardFD; fd++ {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil {
			return nil, nil, nil, errNoChild
		}
		unix.CloseOnExec(fd)
	}
	if err := unix.SetNonblock(statusFD, true); err != nil { // for deadlines
		return nil, nil, nil, err
	}
	guard = os.NewFile(guardFD, "guard pipe")
	status = os.NewFile(statusFD, "status pipe")
	board := os.NewFile(boardFD, "board")
	defer func() { _ = board.Close() }() // the mapping stays
	info, err := board.Stat()
	if err != nil {
		return nil, nil, nil, err
	}
	if info.Size() < int64(threads*rowSize) {
		return nil, nil, nil, errNoChild
	}
	memory, err = share(board, threads*rowSize)
	return guard, status, memory, err
}
