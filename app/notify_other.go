//go:build !linux

package app

import "time"

// monotonic has no meaning where there is no systemd.
func monotonic() time.Duration { return 0 }
