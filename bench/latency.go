package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/client"
	"github.com/postburner/postburner/job"
	"github.com/postburner/postburner/worker"
)

// stamped carries the moment of its enqueueing.
type stamped struct {
	At time.Time `json:"at"`
}

func (stamped) Kind() string { return "stamped" }

// latency measures from before Enqueue to the handler's first instruction, at a steady 1,000 jobs/s.
func (b *bench) latency() error {
	const (
		perSecond = 1000
		seconds   = 10
	)
	var mu sync.Mutex
	var waits []time.Duration
	r := job.NewRegistry()
	job.Handle(r, func(_ context.Context, a stamped) error {
		wait := time.Since(a.At)
		mu.Lock()
		defer mu.Unlock()
		waits = append(waits, wait)
		return nil
	})
	p, err := worker.New(worker.Options{
		Beanstalk: beanstalk.Options{URL: b.server.url()}, Tubes: []string{"postburner.production.latency"},
		Registry: r, Threads: 10, Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	c, err := client.New(client.Options{URL: b.server.url(), Environment: "production", DefaultQueue: "latency"})
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	tick := time.NewTicker(time.Second / perSecond)
	defer tick.Stop()
	for range perSecond * seconds {
		<-tick.C
		if _, err := c.Enqueue(ctx, stamped{time.Now()}); err != nil {
			return err
		}
	}
	for deadline := time.Now().Add(10 * time.Second); p.Stats().Done < perSecond*seconds; <-time.After(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of %d jobs done", p.Stats().Done, perSecond*seconds)
		}
	}
	stop()
	if err := <-ended; err != nil {
		return err
	}
	slices.Sort(waits)
	b.print("\n### Latency\n\nEnqueue to handler start at 1,000 jobs/s over 10 consumers: p50 %v, p99 %v, worst %v (%d jobs).\n",
		waits[len(waits)/2].Round(time.Microsecond), waits[len(waits)*99/100].Round(time.Microsecond), waits[len(waits)-1].Round(time.Microsecond), len(waits))
	return nil
}
