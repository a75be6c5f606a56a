package swarm

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// boardFile makes the memory of a board: pages that are never written to a disk, of a size that
// nobody can change. Where a sandbox forbids that, it is a file without a name.
func boardFile(size int) (*os.File, error) {
	fd, err := unix.MemfdCreate("postburner-board", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		file, fileErr := unnamedFile(size)
		if fileErr != nil {
			return nil, fmt.Errorf("make the board: %w, and no memory file either: %w", fileErr, err)
		}
		return file, nil
	}
	file := os.NewFile(uintptr(fd), "board")
	if err = file.Truncate(int64(size)); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err != nil {
		_ = file.Close() // the error that led here is the one that tells
		return nil, fmt.Errorf("make the board: %w", err)
	}
	return file, nil
}
