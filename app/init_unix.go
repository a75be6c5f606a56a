//go:build unix

package app

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// runAsInit is what the first process of a container does: it runs this program again,
// with the same arguments, as a child, passes signals on to it, reaps every orphan that
// the kernel hands to it, and exits as the child does. Reaping is left to a process of
// its own because whoever waits for any child also takes the exit status of those that
// someone else waits for.
func (p *program) runAsInit() error {
	arrived := make(chan os.Signal, 16)
	signal.Notify(arrived, trapped()...)
	path, err := executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(path, p.Args...) //nolint:noctx // it ends by the signals that are passed on
	cmd.Args[0] = os.Args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what a terminal sends comes once, from here
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the worker below PID 1: %w", err)
	}
	worker := cmd.Process.Pid
	ended := make(chan syscall.WaitStatus)
	go func() { ended <- reapUntil(worker) }()
	for {
		select {
		case sig := <-arrived:
			_ = cmd.Process.Signal(sig) // it has ended if this fails, which is seen below
		case status := <-ended:
			signal.Stop(arrived)
			if status.Signaled() {
				return &exitError{code: 128 + int(status.Signal()), err: fmt.Errorf("the worker below PID 1 was killed by %v", status.Signal())}
			}
			return &exitError{code: status.ExitStatus()}
		}
	}
}

// reapUntil waits for every child, known or not, until one of them has ended.
func reapUntil(pid int) syscall.WaitStatus {
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case ended == pid && (status.Exited() || status.Signaled()):
			return status
		case err != nil && !errors.Is(err, syscall.EINTR): // ECHILD, which cannot be while the child has not been waited for
			panic(fmt.Sprintf("wait for child %d: %v", pid, err))
		}
	}
}
