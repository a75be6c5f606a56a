package retry

import (
	"errors"
	"fmt"
	"time"
)

// Policy decides whether and when a failed job is tried again. The zero Policy never
// retries and buries.
type Policy struct {
	MaxRetries int // after the first attempt; 0: none
	Curve
	Exhausted Exhausted // what becomes of a job whose attempts are used up; "" is Bury
}

// Default is the policy of a job when nothing else is configured: five retries after
// 1, 2, 4, 8 and 16 seconds ±10 %, then buried.
func Default() Policy {
	return Policy{
		MaxRetries: 5,
		Curve:      Curve{Base: time.Second, Factor: 2, Max: time.Hour, Jitter: 0.1},
		Exhausted:  Bury,
	}
}

// Validate reports every field that is out of range, joined.
func (p Policy) Validate() error {
	var problems []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	check(p.MaxRetries >= 0, "MaxRetries is %d, want 0 or more", p.MaxRetries)
	check(p.Base >= 0, "base is %v, want 0 or more", p.Base)
	check(p.Factor == 0 || p.Factor >= 1, "factor is %v, want 1 or more", p.Factor)
	check(p.Max >= 0, "max is %v, want 0 (no ceiling) or more", p.Max)
	check(p.Max == 0 || p.Max >= p.Base, "max %v is below base %v", p.Max, p.Base)
	check(p.Jitter >= 0 && p.Jitter <= 1, "jitter is %v, want 0 to 1", p.Jitter)
	switch p.Exhausted {
	case "", Bury, Discard:
	default:
		problems = append(problems, new(Exhausted).UnmarshalText([]byte(p.Exhausted)))
	}
	return errors.Join(problems...)
}

// Exhausted is what becomes of a job whose attempts are used up.
type Exhausted string

// The ways to end.
const (
	Bury    Exhausted = "bury"    // keep it in beanstalkd for inspection and a later kick
	Discard Exhausted = "discard" // delete it, as the Ruby gem does
)

// UnmarshalText accepts "bury" and "discard".
func (e *Exhausted) UnmarshalText(text []byte) error {
	switch value := Exhausted(text); value {
	case Bury, Discard:
		*e = value
		return nil
	}
	return fmt.Errorf("%q is neither %q nor %q", text, Bury, Discard)
}
