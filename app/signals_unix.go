//go:build unix

package app

import (
	"os"
	"syscall"
)

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
