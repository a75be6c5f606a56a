package job

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Encode writes the envelope in the wire format: times in UTC, text as it is, keys of
// Extra behind the known ones. Its error is one of Arguments or Extra not being JSON.
func (e *Envelope) Encode() ([]byte, error) {
	arguments := e.Arguments
	if arguments == nil {
		arguments = json.RawMessage("[]")
	}
	w := bodyWriter{out: make([]byte, 0, 320+len(arguments)), keys: make([]string, 0, 16)}
	w.out = append(w.out, '{')
	kindKey, argumentsKey := "job_class", "arguments"
	if e.Legacy {
		kindKey, argumentsKey = "class", "args"
	}
	w.text(kindKey, e.Kind)
	if e.ID != "" {
		w.text("job_id", e.ID)
	}
	if e.Queue != "" {
		w.text("queue_name", e.Queue)
	}
	w.raw(argumentsKey, arguments)
	if e.Priority != nil {
		w.number("priority", int64(*e.Priority))
	}
	if e.TTR != nil {
		w.number("ttr", int64(*e.TTR))
	}
	if !e.Legacy {
		w.number("retry_count", int64(e.RetryCount))
		w.number("executions", int64(e.Executions))
	}
	w.moment("enqueued_at", e.EnqueuedAt)
	w.moment("scheduled_at", e.ScheduledAt)
	if e.Tracked {
		w.raw("tracked", json.RawMessage("true"))
	}
	if e.MaxRetries != nil {
		w.number("max_retries", int64(*e.MaxRetries))
	}
	w.moment("expires_at", e.ExpiresAt)
	if e.Schedule != nil {
		w.value("schedule", e.Schedule)
	}
	if len(e.Metadata) > 0 {
		w.value("metadata", e.Metadata)
	}
	for _, key := range slices.Sorted(maps.Keys(e.Extra)) {
		if !slices.Contains(w.keys, key) { // else the field has a value by now
			w.raw(key, e.Extra[key])
		}
	}
	w.out = append(w.out, '}')
	return w.out, w.err
}

// bodyWriter writes one JSON object. Every job that is put pays for it, so it does by
// hand what is plain.
type bodyWriter struct {
	out  []byte
	keys []string
	err  error
}

func (w *bodyWriter) key(key string) {
	if len(w.out) > 1 {
		w.out = append(w.out, ',')
	}
	w.keys = append(w.keys, key)
	w.quote(key)
	w.out = append(w.out, ':')
}

func (w *bodyWriter) quote(text string) {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x80 {
			w.marshal(text)
			return
		}
	}
	w.out = append(append(append(w.out, '"'), text...), '"')
}

func (w *bodyWriter) marshal(value any) {
	text, err := Marshal(value)
	if err != nil && w.err == nil {
		w.err = err
	}
	w.out = append(w.out, text...)
}

func (w *bodyWriter) text(key, text string) {
	w.key(key)
	w.quote(text)
}

func (w *bodyWriter) number(key string, n int64) {
	w.key(key)
	w.out = strconv.AppendInt(w.out, n, 10)
}

func (w *bodyWriter) moment(key string, t time.Time) {
	if t.IsZero() {
		return
	}
	w.key(key)
	w.out = append(t.UTC().AppendFormat(append(w.out, '"'), time.RFC3339Nano), '"')
}

func (w *bodyWriter) value(key string, value any) {
	w.key(key)
	w.marshal(value)
}

// raw writes JSON that is there already, once it is known to be that.
func (w *bodyWriter) raw(key string, text json.RawMessage) {
	w.key(key)
	s := scanner{text: text}
	_, err := s.value(0)
	if err == nil {
		err = s.end()
	}
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("%s %w", key, err)
	}
	w.out = append(w.out, text...)
}

// encoders are kept, since each is several allocations.
var encoders = sync.Pool{New: func() any {
	e := &encoder{}
	e.json = json.NewEncoder(&e.buf)
	e.json.SetEscapeHTML(false)
	return e
}}

type encoder struct {
	buf  bytes.Buffer
	json *json.Encoder
}

// Marshal is json.Marshal without the escapes that only HTML needs, so that a body
// reads as it was written.
func Marshal(value any) ([]byte, error) {
	e := encoders.Get().(*encoder) //nolint:forcetypeassert // only encoders are in there
	e.buf.Reset()
	if err := e.json.Encode(value); err != nil {
		return nil, err // an encoder that has failed once always fails, and is not kept
	}
	text := bytes.Clone(bytes.TrimSuffix(e.buf.Bytes(), []byte("\n")))
	if e.buf.Cap() <= 64<<10 {
		encoders.Put(e)
	}
	return text, nil
}
