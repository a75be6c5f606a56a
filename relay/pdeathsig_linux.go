package relay

import "syscall"

// dieWithParent has the kernel kill the program when this process ends, however it does.
// The kernel means the thread that starts it; Go keeps its threads, but for those that a
// goroutine locked and never unlocked.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
