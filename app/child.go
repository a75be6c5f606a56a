package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/postburner/postburner/config"
	"github.com/postburner/postburner/worker"
	"github.com/postburner/postburner/worker/swarm"
)

// childConfig is what the parent tells a child.
type childConfig struct {
	Config      *config.Config
	DemoJournal string // where the handlers of the demonstration write; "": this is none
}

// childCommand is what the swarm starts.
func (p *program) childCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:    "child",
		Short:  "One process of a worker; started by postburner work",
		Hidden: true,
		Args:   noArgs,
		RunE:   func(cmd *cobra.Command, _ []string) error { return p.child(cmd.Context()) },
	}
	cmd.Flags().String("env", "", "environment")
	cmd.Flags().String("worker", "", "name of the worker")
	cmd.Flags().Int("slot", 0, "number of the slot")
	return cmd
}

// child runs one pool under the parent's supervision.
func (p *program) child(ctx context.Context) error {
	signals := trap()
	child, err := swarm.Join()
	if err != nil {
		return err
	}
	var sent childConfig
	if err := json.Unmarshal(child.Config, &sent); err != nil {
		return fmt.Errorf("read the configuration from the parent: %w", err)
	}
	c := sent.Config
	if sent.DemoJournal != "" {
		addDemoHandlers(p.Registry, sent.DemoJournal)
	}
	out, err := p.openLog(c.Log)
	if err != nil {
		return err
	}
	logger := newLogger(out, c.Log).With("slot", child.Slot)
	if err := addHandlers(p.Registry, c); err != nil {
		return err
	}
	opts := p.poolOptions(c, logger)
	opts.Board, opts.Recycling, opts.Stuck, opts.Vigilant = child.Board, child.Recycling, child.Stuck, child.Vigilant
	pool, err := worker.New(opts)
	if err != nil {
		return err
	}
	return exitFor(p.consumeSupervised(ctx, c, child, pool, signals, out, logger), logger)
}

func (p *program) consumeSupervised(ctx context.Context, c *config.Config, child *swarm.Child, pool *worker.Pool, signals *signals, out io.Writer, logger *slog.Logger) error {
	working, stop := context.WithCancel(ctx)
	defer stop()
	signals.handle(logger, func(s signalKind) {
		switch s {
		case signalStop: // the parent repeats it; only the parent ends a child by force
			stop()
		case signalQuiet:
			pool.Quiet()
		case signalReopen:
			reopenLog(out, logger)
		}
	})
	defer signals.stop()
	if child.Quiet { // before the first reserve
		pool.Quiet()
	}
	if len(child.Suspects) > 0 {
		pool.Suspect(suspects(child.Suspects)...)
	}
	reporting, drained := context.WithCancel(context.Background())
	reported := make(chan error, 1)
	go func() {
		reported <- child.Run(reporting, swarm.Controls{
			Heartbeat: func() swarm.Heartbeat { return beat(pool.Stats()) }, Stop: stop, Quiet: pool.Quiet,
			Suspect: func(all []swarm.Suspect) { pool.Suspect(suspects(all)...) },
		})
	}()
	err := p.consume(working, c, pool, logger)
	drained()
	if reportErr := <-reported; reportErr != nil {
		logger.Error("the parent could not be told how this child is", "error", reportErr)
	}
	return err
}

// suspects are the swarm's, for a pool.
func suspects(all []swarm.Suspect) []worker.Suspect {
	out := make([]worker.Suspect, len(all))
	for i, s := range all {
		out[i] = worker.Suspect{BeanstalkID: s.ID, Key: s.Key, Deaths: s.Deaths, Alone: s.Alone}
	}
	return out
}

// beat is what a pool's statistics are to the parent.
func beat(s worker.Stats) swarm.Heartbeat {
	return swarm.Heartbeat{
		Threads: s.Threads, Connected: s.Connected, Busy: s.Busy, Quiet: s.Quiet,
		Started: s.Started, Done: s.Done, Retried: s.Retried, Discarded: s.Discarded, Buried: s.Buried,
		Lost: s.Lost, Interrupted: s.Interrupted, StuckHandlers: s.Stuck, PossibleDuplicates: s.PossibleDuplicates,
	}
}
