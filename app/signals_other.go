//go:build !unix

package app

import (
	"log/slog"
	"os"
	"syscall"
)

func trapped() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }

func kindOf(os.Signal) signalKind { return signalStop }

// relayDump has nobody to relay to: there are no children here.
func relayDump([]int, *slog.Logger) {}
