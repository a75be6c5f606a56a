//go:build !unix

package app

import (
	"log/slog"
	"os"
	"syscall"
)

func trapped() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }

func kindOf(os.Signal) signalKind { return signalStop }

// forward has nobody to tell: there are no children here.
func forward(signalKind, []int, *slog.Logger) {}
