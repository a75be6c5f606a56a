//go:build unix

package relay

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// group gives the program a process group of its own, all of which is sent TERM when the context ends.
func group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	cmd.Cancel = func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		if err != nil {
			return fmt.Errorf("end the program's process group: %w", err)
		}
		return nil
	}
}

// endGroup kills what a failed program has left of its group, which would be in the way of
// the next attempt; one that succeeded may leave what it likes.
func endGroup(cmd *exec.Cmd) {
	if cmd.Process != nil && cmd.ProcessState != nil && !cmd.ProcessState.Success() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // nothing left is what is wanted
	}
}
