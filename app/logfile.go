package app

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"

	"github.com/postburner/postburner/config"
)

// logFile is a file to which parent and children append, each through a descriptor of
// its own: the system appends each write whole. It can be opened anew after someone has
// moved it away.
type logFile struct {
	path string

	mu   sync.Mutex // guards file
	file *os.File
}

// openLog returns where log lines go: the configured file, else standard error.
func (p *program) openLog(c config.Log) (io.Writer, error) {
	if c.File == "" {
		return patient(p.Stderr), nil
	}
	file, err := openToAppend(c.File)
	if err != nil {
		return nil, fmt.Errorf("open the log file (log.file): %w", err)
	}
	return &logFile{path: c.File, file: file}, nil
}

func openToAppend(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
}

// Write writes a line, with one write.
func (f *logFile) Write(line []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.file.Write(line)
}

// reopen opens the path anew. If that fails the old file is written on.
func (f *logFile) reopen() error {
	file, err := openToAppend(f.path)
	if err != nil {
		return fmt.Errorf("open the log file anew; the old one is written on: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.file
	f.file = file
	if err := old.Close(); err != nil {
		return fmt.Errorf("close the old log file: %w", err)
	}
	return nil
}

// reopenLog answers USR2.
func reopenLog(out io.Writer, logger *slog.Logger) {
	file, ok := out.(*logFile)
	if !ok {
		logger.Debug("no log file to open anew: log.file is not set")
		return
	}
	if err := file.reopen(); err != nil && !errors.Is(err, os.ErrClosed) {
		logger.Error("log file", "error", err)
		return
	}
	logger.Info("log file opened anew", "file", file.path)
}
