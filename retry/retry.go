// Package retry says when something that failed is tried again. A [Curve] is
// exponential backoff, used for reconnects and respawns; a [Policy] is a curve
// with a limit and what happens beyond it, used for jobs. Both are plain values:
// they keep no state and start nothing.
package retry

import "time"

// A Curve is exponential backoff with a ceiling and jitter. The zero Curve never waits.
type Curve struct {
	Base   time.Duration // the first delay
	Factor float64       // growth from one delay to the next; values below 1 count as 1
	Max    time.Duration // ceiling; 0 means none
	Jitter float64       // each delay is spread evenly over ±Jitter of itself, 0…1
}

// Delay returns the n-th delay, min(Base × Factor^(n−1), Max) ± Jitter. n below 1
// counts as 1. It never overflows and is never negative, whatever n is.
func (c Curve) Delay(n int) time.Duration { panic("unwritten") }

// Exhausted says what happens to a job whose attempts are used up.
type Exhausted string

const (
	Bury    Exhausted = "bury"    // keep it in beanstalkd for inspection and a later kick
	Discard Exhausted = "discard" // delete it, as the Ruby gem does
)

// A Policy decides whether and when a failed job is tried again. The zero Policy
// never retries and buries.
type Policy struct {
	MaxRetries int // retries after the first attempt
	Curve
	Exhausted Exhausted // "" means Bury
}

// Default returns the policy that a job gets when nothing else is configured:
// five retries after 1, 2, 4, 8 and 16 seconds (at most one hour, ±10 %), then buried.
func Default() Policy { panic("unwritten") }

// Validate reports every field that is out of range, joined.
func (p Policy) Validate() error { panic("unwritten") }
