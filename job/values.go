package job

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// Date is a day without a time, as ActiveJob's DateSerializer writes it: "2026-03-01".
type Date struct {
	Year  int
	Month time.Month
	Day   int
}

// DateOf returns the day of t in its own location.
func DateOf(t time.Time) Date {
	year, month, day := t.Date()
	return Date{year, month, day}
}

// In returns the start of the day in a location.
func (d Date) In(location *time.Location) time.Time {
	return time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, location)
}

func (d Date) String() string { return fmt.Sprintf("%04d-%02d-%02d", d.Year, d.Month, d.Day) }

// MarshalText writes the form that UnmarshalText reads.
func (d Date) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads "2026-03-01".
func (d *Date) UnmarshalText(text []byte) error {
	t, err := time.Parse(time.DateOnly, string(text))
	if err != nil {
		return fmt.Errorf("date %q: want the form 2026-03-01", text)
	}
	*d = DateOf(t)
	return nil
}

// Duration is a time.Duration that travels as a number of seconds, as ActiveSupport
// writes it. It also reads strings such as "1m30s".
type Duration time.Duration

// MarshalJSON writes seconds, with a fraction only if there is one.
func (d Duration) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, time.Duration(d).Seconds(), 'f', -1, 64), nil
}

// UnmarshalJSON reads a number of seconds or a string of time.ParseDuration's form; null leaves d as it is.
func (d *Duration) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	if text[0] == '"' {
		var s string
		if err := json.Unmarshal(text, &s); err != nil {
			return err
		}
		parsed, err := time.ParseDuration(s)
		*d = Duration(parsed)
		return err
	}
	if whole, err := strconv.ParseInt(string(text), 10, 64); err == nil && whole < 1<<33 && whole > -1<<33 {
		*d = Duration(time.Duration(whole) * time.Second)
		return nil
	}
	seconds, err := strconv.ParseFloat(string(text), 64)
	if err != nil || seconds > 1<<33 || seconds < -1<<33 {
		return fmt.Errorf("duration %s: want a number of seconds, at most about 272 years", text)
	}
	*d = Duration(seconds * float64(time.Second))
	return nil
}
