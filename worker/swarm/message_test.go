package swarm

import (
	"math"
	"testing"
)

// A longer line could reach the parent in pieces when the pipe is full.
func TestTheLongestMessageIsWrittenWhole(t *testing.T) {
	t.Parallel()
	const most = math.MaxUint64
	line, err := encodeLine(message{true, true, true, Heartbeat{math.MaxInt32, math.MaxInt32, math.MaxInt32, true, most, most, most, most, most, most, most, most, most}})
	if err != nil {
		t.Fatal(err)
	}
	if len(line) > messageSize {
		t.Errorf("the longest message has %d bytes, want at most %d: %s", len(line), messageSize, line)
	}
}
