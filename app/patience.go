package app

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// logPatience is how long a log line may wait for whoever reads the log.
const logPatience = time.Second

// patientWriter writes log lines to a pipe or terminal whose reader may have stalled: a
// worker must not stand still, or survive its TERM, because nobody reads its log. A line
// that cannot be written in time is dropped, and so are those behind it until the reader
// is back; then their number is told.
type patientWriter struct {
	out *os.File // never waits by itself

	mu      sync.Mutex // guards dropped
	dropped int
}

// patient returns out with patience, where the system has it and out can stall.
func patient(out io.Writer) io.Writer {
	file, ok := out.(*os.File)
	if !ok {
		return out
	}
	impatient, ok := withoutWaiting(file)
	if !ok {
		return out
	}
	return &patientWriter{out: impatient}
}

// Write writes a line. That it was dropped is no error: the caller could tell nobody.
func (w *patientWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	patience := logPatience
	if w.dropped > 0 {
		patience = 0
		note := fmt.Sprintf("postburner: %d log lines of process %d were dropped, since nobody read them\n", w.dropped, os.Getpid())
		if dropped, err := w.write([]byte(note), patience); dropped || err != nil {
			w.dropped++
			return len(line), err
		}
		w.dropped = 0
	}
	dropped, err := w.write(line, patience)
	if dropped {
		w.dropped++
	}
	return len(line), err
}

func (w *patientWriter) write(text []byte, patience time.Duration) (dropped bool, err error) {
	if err := w.out.SetWriteDeadline(time.Now().Add(max(patience, time.Millisecond))); err != nil {
		return false, err
	}
	if _, err = w.out.Write(text); errors.Is(err, os.ErrDeadlineExceeded) {
		return true, nil
	}
	return false, err
}
