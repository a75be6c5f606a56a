//go:build unix

package swarm

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// filesVariable tells a child the number of its guard pipe; the status pipe and the board
// follow. Without it the numbers would be a guess, and may be files that the process needs.
const filesVariable = "POSTBURNER_SWARM_FILES"

// supported says why there can be no swarm here; nil if there can.
func supported() error { return nil }

// handDown adds what a child inherits: the files behind those that the command has already,
// and a process group of its own, so that what a terminal sends reaches the parent alone.
func handDown(cmd *exec.Cmd, guard, status, board *os.File) {
	first := 3 + len(cmd.ExtraFiles)                                           // exec puts them behind the standard three
	cmd.ExtraFiles = append(slices.Clip(cmd.ExtraFiles), guard, status, board) // the slice may be shared by commands
	cmd.Env = append(cmd.Env, filesVariable+"="+strconv.Itoa(first))
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
}

// inherit takes up what the parent handed down. None of it is passed on to programs that the child starts.
func inherit() (guard, status, board *os.File, err error) {
	text, ok := os.LookupEnv(filesVariable)
	if !ok {
		return nil, nil, nil, errNoChild
	}
	if err := os.Unsetenv(filesVariable); err != nil {
		return nil, nil, nil, err
	}
	first, err := strconv.Atoi(text)
	if err != nil || first < 3 {
		return nil, nil, nil, fmt.Errorf("%s is %q, want the number of an inherited file: %w", filesVariable, text, errNoChild)
	}
	for fd := first; fd < first+3; fd++ {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil {
			return nil, nil, nil, fmt.Errorf("file %d was not inherited: %w", fd, err)
		}
		unix.CloseOnExec(fd)
	}
	for _, fd := range []int{first, first + 1} { // for deadlines, and so that a read holds no thread
		if err := unix.SetNonblock(fd, true); err != nil {
			return nil, nil, nil, fmt.Errorf("make file %d non-blocking: %w", fd, err)
		}
	}
	return os.NewFile(uintptr(first), "guard pipe"), os.NewFile(uintptr(first+1), "status pipe"), os.NewFile(uintptr(first+2), "board"), nil
}

// share maps a board's file into memory.
func share(file *os.File, size int, write bool) ([]byte, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("map the board: %w", err)
	}
	if size <= 0 || info.Size() < int64(size) { // touching what is beyond the file would end the process
		return nil, fmt.Errorf("map the board: the file has %d bytes, want %d", info.Size(), size)
	}
	protection := unix.PROT_READ
	if write {
		protection |= unix.PROT_WRITE
	}
	memory, err := unix.Mmap(int(file.Fd()), 0, size, protection, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the board: %w", err)
	}
	return memory, nil
}

func unshare(memory []byte) error { return unix.Munmap(memory) }

// unnamedFile makes a file that nobody else can open.
func unnamedFile(size int) (*os.File, error) {
	file, err := os.CreateTemp("", "postburner-board-")
	if err != nil {
		return nil, err
	}
	if err = os.Remove(file.Name()); err == nil {
		err = file.Truncate(int64(size))
	}
	if err != nil {
		_ = file.Close() // the error that led here is the one that tells
		return nil, err
	}
	return file, nil
}

// signalName names the signal that ended a process; "" if none did.
func signalName(state *os.ProcessState) string {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return ""
	}
	if name := unix.SignalName(status.Signal()); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", int(status.Signal()))
}
