//go:build unix

package integration_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/postburner/postburner/job"
)

// journalVariable names the file in which the handlers of all processes record what they do.
const journalVariable = "POSTBURNER_TEST_JOURNAL"

// entry is one line of the journal.
type entry struct {
	Event string    `json:"event"` // start, end, cancelled
	Kind  string    `json:"kind"`
	N     int       `json:"n"`
	JobID string    `json:"job_id"`
	PID   int       `json:"pid"`
	At    time.Time `json:"at"`
	Note  string    `json:"note,omitempty"`
}

// journal appends whole lines with one write each, so several processes can share the file.
type journal struct{ file *os.File }

func openJournal(path string) *journal {
	if path == "" {
		panic("the test must set " + journalVariable)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	return &journal{file}
}

func (b *journal) write(ctx context.Context, event string, n int, note string) {
	j := job.FromContext(ctx)
	line, err := json.Marshal(entry{Event: event, Kind: j.Kind, N: n, JobID: j.ID, PID: os.Getpid(), At: time.Now(), Note: note})
	if err != nil {
		panic(err)
	}
	if _, err := b.file.Write(append(line, '\n')); err != nil {
		panic(err)
	}
}

// readJournal returns the entries of the given event (all if "") so far. A line whose end
// is still being written is left for later; one that a killed process left without an end, with the
// next process's line behind it, counts as not written.
func readJournal(t testing.TB, path, event string) []entry {
	t.Helper()
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var entries []entry
	for line := range bytes.Lines(text) {
		if line[len(line)-1] != '\n' {
			break
		}
		var e entry
		err := json.Unmarshal(line, &e)
		if whole := bytes.LastIndex(line, []byte(`{"event":`)); err != nil && whole > 0 {
			err = json.Unmarshal(line[whole:], &e)
		}
		if err != nil {
			t.Fatalf("journal line %q: %v", line, err)
		}
		if event == "" || e.Event == event {
			entries = append(entries, e)
		}
	}
	return entries
}
