//go:build unix

package broker

import (
	"syscall"
	"time"
)

// cpuTime returns the processor time of this process so far.
func cpuTime() (user, system time.Duration) {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0, 0
	}
	return time.Duration(usage.Utime.Nano()), time.Duration(usage.Stime.Nano())
}
