package job

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// body is the wire format in the order in which it is written.
type body struct {
	JobClass    string            `json:"job_class,omitempty"`
	Class       string            `json:"class,omitempty"`
	JobID       string            `json:"job_id,omitempty"`
	QueueName   string            `json:"queue_name,omitempty"`
	Arguments   json.RawMessage   `json:"arguments,omitempty"`
	Args        json.RawMessage   `json:"args,omitempty"`
	Priority    *uint32           `json:"priority,omitempty"`
	TTR         *int              `json:"ttr,omitempty"`
	RetryCount  *int              `json:"retry_count,omitempty"`
	Executions  *int              `json:"executions,omitempty"`
	EnqueuedAt  *time.Time        `json:"enqueued_at,omitempty"`
	ScheduledAt *time.Time        `json:"scheduled_at,omitempty"`
	Tracked     bool              `json:"tracked,omitempty"`
	MaxRetries  *int              `json:"max_retries,omitempty"`
	ExpiresAt   *time.Time        `json:"expires_at,omitempty"`
	Schedule    *Schedule         `json:"schedule,omitempty"`
	Metadata    map[string]string `json:"metadata,omitempty"`
}

// Encode writes the envelope in the wire format: times in UTC, text as it is, keys of
// Extra behind the known ones. Its error is one of Arguments or Extra not being JSON.
func (e *Envelope) Encode() ([]byte, error) {
	b := body{
		JobID: e.ID, QueueName: e.Queue, Priority: e.Priority, TTR: e.TTR, Tracked: e.Tracked, MaxRetries: e.MaxRetries,
		EnqueuedAt: utc(e.EnqueuedAt), ScheduledAt: utc(e.ScheduledAt), ExpiresAt: utc(e.ExpiresAt), Schedule: e.Schedule, Metadata: e.Metadata,
	}
	arguments := e.Arguments
	if arguments == nil {
		arguments = json.RawMessage("[]")
	}
	if e.Legacy {
		b.Class, b.Args = e.Kind, arguments
	} else {
		b.JobClass, b.Arguments, b.RetryCount, b.Executions = e.Kind, arguments, &e.RetryCount, &e.Executions
	}
	out, err := Marshal(b)
	if err != nil || len(e.Extra) == 0 {
		return out, err
	}
	out = out[:len(out)-1] // the brace: a kind is always before it
	for _, key := range slices.Sorted(maps.Keys(e.Extra)) {
		if _, known := keys[key]; known && bytes.Contains(out, []byte(`"`+key+`":`)) {
			continue // the field has a value by now
		}
		name, err := Marshal(key)
		if err != nil {
			return nil, err
		}
		value, err := Marshal(e.Extra[key])
		if err != nil {
			return nil, err
		}
		out = append(append(append(append(out, ','), name...), ':'), value...)
	}
	return append(out, '}'), nil
}

func utc(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// Marshal is json.Marshal without the escapes that only HTML needs, so that a body
// reads as it was written.
func Marshal(value any) ([]byte, error) {
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
