//go:build unix && !linux

package swarm

import (
	"fmt"
	"os"
)

// boardFile makes the memory of a board: a file without a name.
func boardFile(size int) (*os.File, error) {
	file, err := unnamedFile(size)
	if err != nil {
		return nil, fmt.Errorf("make the board: %w", err)
	}
	return file, nil
}
