//go:build unix && !linux

package relay

import "syscall"

// dieWithParent cannot be had here.
func dieWithParent(*syscall.SysProcAttr) {}
