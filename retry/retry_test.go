package retry_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/postburner/postburner/retry"
)

func TestTheDefaultPolicyWaitsAsThePromiseSays(t *testing.T) {
	t.Parallel()
	p := retry.Default()
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	p.Jitter = 0
	want := []time.Duration{1, 2, 4, 8, 16}
	if p.MaxRetries != len(want) {
		t.Errorf("MaxRetries = %d, want %d", p.MaxRetries, len(want))
	}
	for i, seconds := range want {
		if got := p.Delay(i + 1); got != seconds*time.Second {
			t.Errorf("Delay(%d) = %v, want %v", i+1, got, seconds*time.Second)
		}
	}
	if got := p.Delay(100); got != time.Hour {
		t.Errorf("Delay(100) = %v, want the ceiling of an hour", got)
	}
}

func curves() *rapid.Generator[retry.Curve] {
	return rapid.Custom(func(t *rapid.T) retry.Curve {
		return retry.Curve{
			Base:   time.Duration(rapid.Int64().Draw(t, "base")),
			Factor: rapid.Float64Range(-2, 1e9).Draw(t, "factor"),
			Max:    time.Duration(rapid.Int64().Draw(t, "max")),
			Jitter: rapid.Float64Range(0, 1).Draw(t, "jitter"),
		}
	})
}

func TestNoDelayIsNegativeOrFarOverItsCeiling(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := curves().Draw(t, "curve")
		n := rapid.OneOf(rapid.Int(), rapid.Just(math.MaxInt), rapid.Just(math.MinInt)).Draw(t, "n")
		got := c.Delay(n)
		if got < 0 {
			t.Fatalf("Delay(%d) = %v", n, got)
		}
		if c.Max > 0 && float64(got) > float64(c.Max)*(1+c.Jitter)+1 {
			t.Fatalf("Delay(%d) = %v, over the ceiling %v with jitter %v", n, got, c.Max, c.Jitter)
		}
	})
}

func TestWithoutJitterDelaysNeverShrink(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := curves().Draw(t, "curve")
		c.Jitter = 0
		n := rapid.IntRange(0, math.MaxInt-1).Draw(t, "n")
		if c.Delay(n) > c.Delay(n+1) {
			t.Fatalf("Delay(%d) = %v, Delay(%d) = %v", n, c.Delay(n), n+1, c.Delay(n+1))
		}
	})
}

func TestJitterSpreadsToBothSides(t *testing.T) {
	t.Parallel()
	c := retry.Curve{Base: time.Second, Jitter: 0.5}
	var below, above bool
	for range 1000 {
		got := c.Delay(1)
		below = below || got < time.Second
		above = above || got > time.Second
		if got < time.Second/2 || got > 3*time.Second/2 {
			t.Fatalf("Delay(1) = %v, want within half of a second", got)
		}
	}
	if !below || !above {
		t.Errorf("a thousand delays: some below %v, some above %v; want both", below, above)
	}
}

func TestValidateReportsEveryProblem(t *testing.T) {
	t.Parallel()
	err := retry.Policy{
		MaxRetries: -1, Exhausted: "burn",
		Curve: retry.Curve{Base: time.Minute, Max: time.Second, Factor: 0.5, Jitter: 2},
	}.Validate()
	for _, want := range []string{"MaxRetries is -1", "max 1s is below base 1m0s", "factor is 0.5", "jitter is 2", `"burn" is neither`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Validate() = %v, want it to say %q", err, want)
		}
	}
}

func TestExhaustedIsReadFromText(t *testing.T) {
	t.Parallel()
	var p struct{ Exhausted retry.Exhausted }
	if err := json.Unmarshal([]byte(`{"exhausted": "discard"}`), &p); err != nil || p.Exhausted != retry.Discard {
		t.Errorf("got %q, %v, want discard", p.Exhausted, err)
	}
	if err := json.Unmarshal([]byte(`{"exhausted": "keep"}`), &p); err == nil || !strings.Contains(err.Error(), `neither "bury" nor "discard"`) {
		t.Errorf("err = %v, want one that names both values", err)
	}
}

func ExamplePolicy() {
	p := retry.Policy{MaxRetries: 3, Curve: retry.Curve{Base: 5 * time.Second, Factor: 3, Max: time.Minute}}
	for n := 1; n <= p.MaxRetries; n++ {
		fmt.Println(p.Delay(n))
	}
	// Output:
	// 5s
	// 15s
	// 45s
}
