//go:build !unix

package app

import (
	"os"
	"syscall"
)

func trapped() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }

func kindOf(os.Signal) signalKind { return signalStop }
