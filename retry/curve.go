// Package retry says when something that failed is tried again. A [Curve] is
// exponential backoff, used for reconnects and respawns; a [Policy] is a curve with a
// limit and what happens beyond it, used for jobs. Both are plain values: they keep
// no state and start nothing.
package retry

import (
	"math"
	"math/rand/v2"
	"time"
)

// Curve is exponential backoff with a ceiling and jitter. The zero Curve never waits.
type Curve struct {
	Base   time.Duration // the first delay
	Factor float64       // growth from one delay to the next; below 1 counts as 1
	Max    time.Duration // ceiling before jitter; 0: none but the largest Duration
	Jitter float64       // each delay is spread evenly over ±Jitter of itself, 0 to 1
}

// Delay returns the n-th delay, min(Base × Factor^(n−1), Max) ± Jitter. n below 1
// counts as 1. The result is never negative and does not overflow, whatever n is.
func (c Curve) Delay(n int) time.Duration {
	if c.Base <= 0 {
		return 0
	}
	ceiling := time.Duration(math.MaxInt64)
	if c.Max > 0 {
		ceiling = c.Max
	}
	delay := float64(c.Base) * math.Pow(max(c.Factor, 1), float64(max(n, 1)-1))
	delay = min(delay, float64(ceiling)) // +Inf for a large n
	if c.Jitter > 0 {
		delay *= 1 + min(c.Jitter, 1)*(2*rand.Float64()-1)
	}
	if delay >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(delay)
}
