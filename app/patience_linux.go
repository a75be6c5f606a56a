package app

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// withoutWaiting opens a pipe or terminal a second time, for writes that do not wait: to
// change that of the file itself would change it for every process that shares it.
func withoutWaiting(file *os.File) (*os.File, bool) {
	info, err := file.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeCharDevice) == 0 {
		return nil, false // a file never stalls, and a socket cannot be opened again
	}
	again, err := os.OpenFile(fmt.Sprint("/proc/self/fd/", file.Fd()), os.O_WRONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, false
	}
	if again.SetWriteDeadline(time.Time{}) != nil { // /dev/null, for example
		_ = again.Close() // never written to
		return nil, false
	}
	return again, true
}
