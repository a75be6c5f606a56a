package app

import (
	"time"

	"golang.org/x/sys/unix"
)

// monotonic is the time since the system was started, as systemd's messages have it.
func monotonic() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0
	}
	return time.Duration(now.Nano())
}
