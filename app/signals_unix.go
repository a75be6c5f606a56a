//go:build unix

package app

import (
	"errors"
	"log/slog"
	"os"
	"syscall"
)

// trapped lists the signals that would otherwise end or stop the process, but for those that report its own crash.
func trapped() []os.Signal {
	return []os.Signal{
		syscall.SIGTERM, syscall.SIGINT, syscall.SIGTSTP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTTIN,
		syscall.SIGHUP, syscall.SIGPIPE, syscall.SIGALRM,
	}
}

func kindOf(sig os.Signal) signalKind {
	switch sig {
	case syscall.SIGTERM, syscall.SIGINT:
		return signalStop
	case syscall.SIGTSTP:
		return signalQuiet
	case syscall.SIGUSR1:
		return signalRestart
	case syscall.SIGTTIN:
		return signalDump
	}
	return signalIgnored
}

// relayDump asks the processes for their goroutines too.
func relayDump(pids []int, logger *slog.Logger) {
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGTTIN); err != nil && !errors.Is(err, syscall.ESRCH) {
			logger.Error("TTIN could not be relayed to a child", "pid", pid, "error", err)
		}
	}
}
