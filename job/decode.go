package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// MalformedError says why a body is no job. Such a job can never be run: it is buried.
type MalformedError struct {
	Reason string // continues a sentence about the body
	Body   string // its beginning, printable
}

func (e *MalformedError) Error() string {
	return fmt.Sprintf("malformed job: the body %s: %s", e.Reason, e.Body)
}

// excerpt bounds what of a body gets into a message.
func excerpt(body []byte) string {
	const limit = 80
	if len(body) > limit {
		return strconv.QuoteToASCII(string(body[:limit])) + "…"
	}
	return strconv.QuoteToASCII(string(body))
}

// Decode reads a body; the envelope refers to it. Its error is a *MalformedError: the
// body is not JSON, not an object, names no kind, or has a key of the wrong type that
// decides what becomes of the job. A key that only informs (priority, ttr, executions,
// the times of enqueueing, metadata) is put into Extra if its type is wrong. Of
// repeated keys the last counts, as everywhere in JSON.
func Decode(body []byte) (*Envelope, error) {
	e := &Envelope{}
	var class, args []byte
	err := scanObject(body, func(key, value []byte) error {
		switch string(key) {
		case "class":
			class = value
			return nil
		case "args":
			args = value
			return nil
		}
		return e.member(key, value)
	})
	if err == nil {
		err = e.legacy(class, args)
	}
	if err != nil {
		return nil, &MalformedError{Reason: err.Error(), Body: excerpt(body)}
	}
	return e, nil
}

// legacy takes class and args for what they are if there is no job_class.
func (e *Envelope) legacy(class, args []byte) error {
	if e.Kind == "" && class != nil {
		if err := text(&e.Kind, class); err != nil {
			return fmt.Errorf("has a class that %w", err)
		}
		e.Legacy = true
		if args != nil {
			e.Arguments = args
		}
	} else {
		e.keep("class", class)
		e.keep("args", args)
	}
	if e.Kind == "" {
		return errors.New("names no kind: it has neither job_class nor class")
	}
	if e.Arguments == nil || string(e.Arguments) == "null" {
		e.Arguments = json.RawMessage("[]")
	}
	if e.Arguments[0] != '[' {
		return errors.New("has arguments that are not an array")
	}
	return nil
}

func (e *Envelope) keep(key string, value []byte) {
	if value == nil {
		return
	}
	if e.Extra == nil {
		e.Extra = make(map[string]json.RawMessage)
	}
	e.Extra[key] = value
}

// member takes one key. Null counts as absent.
func (e *Envelope) member(key, value []byte) error {
	k, known := keys[string(key)]
	if !known {
		name, err := unescape(key)
		if err != nil {
			return fmt.Errorf("has a key %q: %w", key, err)
		}
		if k, known = keys[name]; !known {
			e.keep(name, value)
			return nil
		}
	}
	if string(value) == "null" {
		return nil
	}
	err := k.set(e, value)
	switch {
	case err == nil:
		return nil
	case k.decides:
		return fmt.Errorf("has a %s that %w", k.name, err)
	}
	e.keep(k.name, value)
	return nil
}

// unescape is the name that a key stands for.
func unescape(key []byte) (string, error) {
	name := string(key)
	if strings.IndexByte(name, '\\') < 0 && utf8.ValidString(name) {
		return name, nil
	}
	err := json.Unmarshal([]byte(`"`+name+`"`), &name)
	return name, err
}

// wireKey is one key of the wire format.
type wireKey struct {
	name    string
	decides bool // a wrong type makes the job malformed; else the value goes to Extra
	set     func(e *Envelope, value []byte) error
}

var keys = byName(
	wireKey{"job_class", true, func(e *Envelope, v []byte) error { return text(&e.Kind, v) }},
	wireKey{"job_id", true, func(e *Envelope, v []byte) error { return text(&e.ID, v) }},
	wireKey{"arguments", true, func(e *Envelope, v []byte) error { e.Arguments = v; return nil }},
	wireKey{"retry_count", true, func(e *Envelope, v []byte) error { return count(&e.RetryCount, v) }},
	wireKey{"tracked", true, func(e *Envelope, v []byte) error { return boolean(&e.Tracked, v) }},
	wireKey{"max_retries", true, func(e *Envelope, v []byte) error { return optional(&e.MaxRetries, count, v) }},
	wireKey{"expires_at", true, func(e *Envelope, v []byte) error { return moment(&e.ExpiresAt, v) }},
	wireKey{"schedule", true, func(e *Envelope, v []byte) error { return optional(&e.Schedule, schedule, v) }},
	wireKey{"queue_name", false, func(e *Envelope, v []byte) error { return text(&e.Queue, v) }},
	wireKey{"executions", false, func(e *Envelope, v []byte) error { return count(&e.Executions, v) }},
	wireKey{"enqueued_at", false, func(e *Envelope, v []byte) error { return moment(&e.EnqueuedAt, v) }},
	wireKey{"scheduled_at", false, func(e *Envelope, v []byte) error { return moment(&e.ScheduledAt, v) }},
	wireKey{"priority", false, func(e *Envelope, v []byte) error { return optional(&e.Priority, priority, v) }},
	wireKey{"ttr", false, func(e *Envelope, v []byte) error { return optional(&e.TTR, count, v) }},
	wireKey{"metadata", false, func(e *Envelope, v []byte) error { return metadata(&e.Metadata, v) }},
)

func byName(all ...wireKey) map[string]*wireKey {
	m := make(map[string]*wireKey, len(all))
	for i := range all {
		m[all[i].name] = &all[i]
	}
	return m
}

// optional sets a field that is nil where the key is absent, unless the value is wrong.
func optional[T any](dst **T, read func(*T, []byte) error, value []byte) error {
	v := new(T)
	err := read(v, value)
	if err == nil {
		*dst = v
	}
	return err
}

func schedule(dst *Schedule, value []byte) error {
	if err := json.Unmarshal(value, dst); err != nil {
		return errors.New("is not {name, run_at}")
	}
	return nil
}

func priority(dst *uint32, value []byte) error {
	n, err := strconv.ParseUint(string(value), 10, 32)
	*dst = uint32(n)
	return err
}

func metadata(dst *map[string]string, value []byte) error {
	var m map[string]string
	err := json.Unmarshal(value, &m)
	if err == nil {
		*dst = m
	}
	return err
}

func text(dst *string, value []byte) error {
	if value[0] != '"' {
		return errors.New("is not a string")
	}
	inner := value[1 : len(value)-1]
	for _, c := range inner {
		if c == '\\' || c >= 0x80 { // escapes, and text that may be no UTF-8
			return json.Unmarshal(value, dst)
		}
	}
	*dst = string(inner)
	return nil
}

func count(dst *int, value []byte) error {
	n, err := strconv.ParseUint(string(value), 10, 31)
	if err != nil {
		return fmt.Errorf("is not a whole number from 0 to %d", math.MaxInt32)
	}
	*dst = int(n)
	return nil
}

func boolean(dst *bool, value []byte) error {
	switch string(value) {
	case "true":
		*dst = true
	case "false":
		*dst = false
	default:
		return errors.New("is neither true nor false")
	}
	return nil
}

func moment(dst *time.Time, value []byte) error {
	var t time.Time
	if err := t.UnmarshalJSON(value); err != nil {
		return errors.New("is not a time in RFC 3339, such as 2026-12-01T04:43:33Z")
	}
	*dst = t
	return nil
}
