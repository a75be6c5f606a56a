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
	name := string(key)
	if strings.IndexByte(name, '\\') >= 0 || !utf8.ValidString(name) {
		if err := json.Unmarshal([]byte(`"`+name+`"`), &name); err != nil {
			return fmt.Errorf("has a key %q: %w", key, err)
		}
	}
	if string(value) == "null" {
		if _, known := keys[name]; known {
			return nil
		}
	}
	err := e.set(name, value)
	switch {
	case err == nil:
		return nil
	case keys[name] == decides:
		return fmt.Errorf("has a %s that %w", name, err)
	}
	e.keep(name, value)
	return nil
}

// weight says what a wrong type of a key means.
type weight int

const (
	informs weight = iota // the value goes to Extra
	decides               // the job is malformed
)

// keys are those of the wire format.
var keys = map[string]weight{
	"job_class": decides, "job_id": decides, "arguments": decides, "retry_count": decides, "tracked": decides,
	"max_retries": decides, "expires_at": decides, "schedule": decides,
	"queue_name": informs, "priority": informs, "ttr": informs, "executions": informs,
	"enqueued_at": informs, "scheduled_at": informs, "metadata": informs,
}

// errUnknownKey sends a key to Extra.
var errUnknownKey = errors.New("is unknown")

func (e *Envelope) set(name string, value []byte) error {
	switch name {
	case "job_class":
		return text(&e.Kind, value)
	case "job_id":
		return text(&e.ID, value)
	case "arguments":
		e.Arguments = value
		return nil
	case "retry_count":
		return count(&e.RetryCount, value)
	case "tracked":
		return boolean(&e.Tracked, value)
	case "max_retries":
		e.MaxRetries = new(int)
		return count(e.MaxRetries, value)
	case "expires_at":
		return moment(&e.ExpiresAt, value)
	case "schedule":
		if err := json.Unmarshal(value, &e.Schedule); err != nil {
			return errors.New("is not {name, run_at}")
		}
		return nil
	case "queue_name":
		return text(&e.Queue, value)
	case "executions":
		return count(&e.Executions, value)
	case "enqueued_at":
		return moment(&e.EnqueuedAt, value)
	case "scheduled_at":
		return moment(&e.ScheduledAt, value)
	case "priority":
		n, err := strconv.ParseUint(string(value), 10, 32)
		if err == nil {
			pri := uint32(n)
			e.Priority = &pri
		}
		return err
	case "ttr":
		var seconds int
		err := count(&seconds, value)
		if err == nil {
			e.TTR = &seconds
		}
		return err
	case "metadata":
		var metadata map[string]string
		err := json.Unmarshal(value, &metadata)
		if err == nil {
			e.Metadata = metadata
		}
		return err
	}
	return errUnknownKey
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
	var s string
	if err := text(&s, value); err != nil {
		return err
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return errors.New("is not a time in RFC 3339, such as 2026-12-01T04:43:33Z")
	}
	*dst = t
	return nil
}
