package worker

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
)

// stackLabel marks the goroutines of a consumer, and with them those that its handlers
// start, in goroutine profiles.
const stackLabel = "postburner"

func (c *consumer) labelName() string { return fmt.Sprintf("consumer %d of pool %p", c.number, c.pool) }

// label marks the goroutine that calls it.
func (c *consumer) label() {
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels(stackLabel, c.labelName())))
}

// maxStack bounds what of the stacks is logged, in bytes.
const maxStack = 16 << 10

// stack returns the stacks of the consumer's goroutine and of those that its handler has started.
func (c *consumer) stack() string {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		return err.Error()
	}
	var own []string
	for block := range strings.SplitSeq(profile.String(), "\n\n") {
		if strings.Contains(block, fmt.Sprintf("%q", c.labelName())) {
			own = append(own, strings.TrimSpace(block))
		}
	}
	text := strings.Join(own, "\n\n")
	return text[:min(len(text), maxStack)]
}
