//go:build !unix

package broker

import "time"

// cpuTime returns nothing where the system has no getrusage.
func cpuTime() (user, system time.Duration) { return 0, 0 }
