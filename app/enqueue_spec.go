package app

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"time"

	"github.com/postburner/postburner/client"
)

// jobSpec is one job as the command line or a line of a file describes it. What is nil or empty is not said.
type jobSpec struct {
	Kind       string            `json:"kind"`
	Args       json.RawMessage   `json:"args"`
	Queue      string            `json:"queue"`
	Delay      *seconds          `json:"delay"`
	At         *time.Time        `json:"at"`
	Priority   *uint32           `json:"priority"`
	TTR        *seconds          `json:"ttr"`
	MaxRetries *int              `json:"max_retries"`
	Tracked    *bool             `json:"tracked"`
	ExpiresAt  *time.Time        `json:"expires_at"`
	Metadata   map[string]string `json:"metadata"`
	JobID      string            `json:"job_id"`
}

// or fills in what s does not say from standard, which stays as it is. Metadata of both is joined.
func (s jobSpec) or(standard jobSpec) jobSpec {
	s.Kind = cmp.Or(s.Kind, standard.Kind)
	if s.Args == nil {
		s.Args = standard.Args
	}
	s.Queue = cmp.Or(s.Queue, standard.Queue)
	if s.Delay == nil && s.At == nil {
		s.Delay, s.At = standard.Delay, standard.At
	}
	s.Priority = cmp.Or(s.Priority, standard.Priority)
	s.TTR = cmp.Or(s.TTR, standard.TTR)
	s.MaxRetries = cmp.Or(s.MaxRetries, standard.MaxRetries)
	s.Tracked = cmp.Or(s.Tracked, standard.Tracked)
	s.ExpiresAt = cmp.Or(s.ExpiresAt, standard.ExpiresAt)
	if len(standard.Metadata) > 0 {
		all := maps.Clone(standard.Metadata)
		maps.Copy(all, s.Metadata)
		s.Metadata = all
	}
	s.JobID = cmp.Or(s.JobID, standard.JobID)
	return s
}

// check reports everything that is wrong.
func (s *jobSpec) check() error {
	var problems []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	check(strings.TrimSpace(s.Kind) != "", "names no kind")
	check(s.Args == nil || bytes.HasPrefix(bytes.TrimSpace(s.Args), []byte("{")), `args: want a JSON object such as {"user_id": 7}, not %s`, s.Args)
	check(s.Delay == nil || s.At == nil, "has both delay and at: name one of them")
	check(s.Delay == nil || *s.Delay >= 0, "delay is %v, want 0 or more", s.Delay)
	check(s.TTR == nil || time.Duration(*s.TTR) >= time.Second, "ttr is %v, want 1s or more", s.TTR)
	check(s.MaxRetries == nil || *s.MaxRetries >= 0 && *s.MaxRetries <= math.MaxInt32, "max_retries is %d, want 0 to %d", value(s.MaxRetries), math.MaxInt32)
	return errors.Join(problems...)
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// item is what the client makes of a spec that check has found good.
func (s *jobSpec) item() client.Item {
	args := s.Args
	if args == nil {
		args = json.RawMessage("{}")
	}
	var options []client.Option
	add := func(said bool, option func() client.Option) {
		if said {
			options = append(options, option())
		}
	}
	add(s.Queue != "", func() client.Option { return client.Queue(s.Queue) })
	add(s.Delay != nil, func() client.Option { return client.Delay(time.Duration(*s.Delay)) })
	add(s.At != nil, func() client.Option { return client.At(*s.At) })
	add(s.Priority != nil, func() client.Option { return client.Priority(*s.Priority) })
	add(s.TTR != nil, func() client.Option { return client.TTR(time.Duration(*s.TTR)) })
	add(s.MaxRetries != nil, func() client.Option { return client.MaxRetries(*s.MaxRetries) })
	add(value(s.Tracked), client.Tracked)
	add(s.ExpiresAt != nil, func() client.Option { return client.ExpiresAt(*s.ExpiresAt) })
	add(s.JobID != "", func() client.Option { return client.JobID(s.JobID) })
	for key, value := range s.Metadata {
		options = append(options, client.Metadata(key, value))
	}
	return client.Item{Args: client.Raw{JobKind: s.Kind, Arguments: args}, Options: options}
}

// seconds is a duration that is a number of seconds or text such as 90s, as in the configuration.
type seconds time.Duration

// UnmarshalJSON reads either.
func (d *seconds) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		s = string(text)
	}
	return d.Set(s)
}

// Set reads either, as a flag has it.
func (d *seconds) Set(s string) error {
	var number float64
	if err := json.Unmarshal([]byte(s), &number); err == nil && math.Abs(number) < float64(math.MaxInt64/time.Second) {
		*d = seconds(number * float64(time.Second))
		return nil
	}
	parsed, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("%q is no duration: want seconds, or text such as 90s or 1h30m", s)
	}
	*d = seconds(parsed)
	return nil
}

func (d *seconds) String() string {
	if d == nil {
		return ""
	}
	return time.Duration(*d).String()
}
