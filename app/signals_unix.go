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
	case syscall.SIGUSR2:
		return signalReopen
	}
	return signalIgnored
}

// forward passes on to the children what each answers for itself.
func forward(kind signalKind, pids []int, logger *slog.Logger) {
	sig := map[signalKind]syscall.Signal{signalDump: syscall.SIGTTIN, signalReopen: syscall.SIGUSR2}[kind]
	for _, pid := range pids {
		if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			logger.Error("a signal could not be relayed to a child", "signal", sig.String(), "pid", pid, "error", err)
		}
	}
}
