package main

import (
	"context"
	"fmt"
	"time"

	"github.com/postburner/postburner/client"
)

// enqueued is what the enqueue benchmark puts: the same 200 bytes, by the client.
type enqueued struct {
	N   int    `json:"n"`
	Pad string `json:"pad"`
}

func (enqueued) Kind() string { return "noop" }

// enqueue compares EnqueueMany with a raw writer that pipelines ready-made bodies, and
// shows what one Enqueue at a time costs.
func (b *bench) enqueue() error {
	const queue = "enqueue"
	tube := "postburner.production." + queue
	c, err := client.New(client.Options{URL: b.server.url(), Environment: "production", DefaultQueue: queue})
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	ctx := context.Background()
	items := make([]client.Item, b.jobs)
	for i := range items {
		items[i] = client.Item{Args: enqueued{N: i, Pad: "xxxxxxxxxxxx"}}
	}
	raw := func() error {
		control, err := b.server.dial()
		if err != nil {
			return err
		}
		defer func() { _ = control.conn.Close() }()
		return control.fill(tube, b.jobs, body)
	}
	many := func() error {
		_, err := c.EnqueueMany(ctx, items)
		return err
	}
	single := func() error {
		for i := range b.jobs / 10 {
			if _, err := c.Enqueue(ctx, enqueued{N: i}); err != nil {
				return err
			}
		}
		return nil
	}
	writers := []struct {
		name string
		jobs int
		run  func() error
	}{{"raw socket, pipelined, bodies ready-made", b.jobs, raw}, {"`EnqueueMany`", b.jobs, many}, {"`Enqueue`, one at a time", b.jobs / 10, single}}
	rates := make([][]float64, len(writers))
	for round := range b.rounds + 1 {
		for i, w := range writers {
			start := time.Now()
			if err := w.run(); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			if round > 0 {
				rates[i] = append(rates[i], float64(w.jobs)/time.Since(start).Seconds())
			}
			if err := b.empty(tube); err != nil {
				return err
			}
		}
	}
	b.print("\n### Enqueueing over one client\n\n| writer | jobs/s, median (min–max) | `EnqueueMany` ÷ this |\n|---|---|---|\n")
	for i, w := range writers {
		b.print("| %s | %s | %.2f |\n", w.name, spread(rates[i]), ratio(rates[1], rates[i]))
	}
	return nil
}

// empty deletes what the tube holds, so that no measurement runs on a fuller server than the one before.
func (b *bench) empty(tube string) error {
	control, err := b.server.dial()
	if err != nil {
		return err
	}
	defer func() { _ = control.conn.Close() }()
	if _, err := control.command("watch %s", tube); err != nil {
		return err
	}
	return control.drain()
}
