package scheduler

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/postburner/postburner/job"
)

// maxState bounds the body of a watchdog, well below the server's default limit of 65535.
const maxState = 60_000

// watchdog is the body of the watchdog job.
type watchdog struct {
	Interval   time.Duration
	Generation uint64                     // grows by one with each put
	extra      map[string]json.RawMessage // keys of a newer version, kept
}

// errForeign is a job in the scheduler tube that is no watchdog.
var errForeign = errors.New("the job is no watchdog")

// parseWatchdog reads a body. What the Ruby gem puts, without a generation, is an empty
// state. errForeign says that the body is not a watchdog's at all; any other error that it is one whose
// state is of no use, and the state returned is then empty.
func parseWatchdog(body []byte) (watchdog, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return watchdog{}, fmt.Errorf("%w: %w", errForeign, err)
	}
	if string(fields["scheduler"]) != "true" {
		return watchdog{}, fmt.Errorf(`%w: it lacks "scheduler": true`, errForeign)
	}
	if len(body) > maxState {
		return watchdog{}, fmt.Errorf("its state has %d bytes, at most %d are kept", len(body), maxState)
	}
	var w watchdog
	if text, ok := fields["interval"]; ok {
		var seconds float64
		if err := json.Unmarshal(text, &seconds); err != nil || seconds < 0 || seconds > 1e9 {
			return watchdog{}, fmt.Errorf("its interval %s is no number of seconds", text)
		}
		w.Interval = time.Duration(seconds * float64(time.Second))
	}
	if text, ok := fields["generation"]; ok {
		if err := json.Unmarshal(text, &w.Generation); err != nil {
			return watchdog{}, fmt.Errorf("its generation %s is no whole number", text)
		}
	}
	for _, known := range []string{"scheduler", "interval", "generation"} {
		delete(fields, known)
	}
	if len(fields) > 0 {
		w.extra = fields
	}
	return w, nil
}

// encode writes the body, the keys of the Ruby gem first.
func (w watchdog) encode() ([]byte, error) {
	var out bytes.Buffer
	fmt.Fprintf(&out, `{"scheduler":true,"interval":%d,"generation":%d`, int64(w.Interval/time.Second), w.Generation)
	if len(w.extra) > 0 {
		rest, err := job.Marshal(w.extra)
		if err != nil {
			return nil, err
		}
		out.WriteByte(',')
		out.Write(rest[1 : len(rest)-1])
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}
