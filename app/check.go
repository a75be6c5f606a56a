package app

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/postburner/postburner/config"
	"github.com/postburner/postburner/job"
)

func (p *program) checkCommand() *cobra.Command {
	var s settings
	var grace time.Duration
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check the configuration and print it",
		Long: `Check the configuration as work would, with the same flags, and print what is in
force: each value with where it comes from, secrets masked, then the tubes that would
be watched and the kinds that have a handler. Nothing is started or connected.

With --grace, the time between TERM and KILL that whoever runs the worker gives it
(terminationGracePeriodSeconds, TimeoutStopSec), it also checks that the worker can
stop within: shutdown_timeout and 5 s more have to be less.

Exit codes: 0 it is good, 78 it is not; every problem is printed.`,
		Example: `  postburner check --env production --worker default
  postburner check --env production --grace 60s`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := s.load()
			if err != nil {
				return err
			}
			if err := checkHandlers(p.Registry, c); err != nil {
				return err
			}
			if cmd.Flags().Changed("grace") {
				if err := checkGrace(c.Worker.ShutdownTimeout, grace); err != nil {
					return err
				}
			}
			text, err := c.Effective()
			if err != nil {
				return err
			}
			return p.print("%s\n# watches: %s\n# watchdog: %s\n# handles: %s\n", text, strings.Join(c.Tubes(), " "), c.SchedulerTube(), describeHandlers(p.Registry, c))
		},
	}
	p.workerFlags(&s, cmd)
	cmd.Flags().DurationVar(&grace, "grace", 0, "`time` between TERM and KILL, such as 60s, which has to be enough for a stop")
	return cmd
}

// killDelay is how long after the shutdown timeout a swarm kills its children.
const killDelay = 5 * time.Second

// checkGrace reports a shutdown timeout that someone's KILL would cut short.
func checkGrace(shutdown, grace time.Duration) error {
	if need := shutdown + killDelay; need >= grace {
		return &exitError{ExitConfig, fmt.Errorf(
			"shutdown_timeout (%v) + %v = %v has to be less than the grace period (--grace %v), or running jobs are killed: raise terminationGracePeriodSeconds or TimeoutStopSec, or lower shutdown_timeout",
			shutdown, killDelay, need, grace)}
	}
	return nil
}

// checkHandlers is addHandlers on a registry that is not used.
func checkHandlers(registry *job.Registry, c *config.Config) error {
	scratch := job.NewRegistry()
	for _, kind := range registry.Kinds() {
		if h, ok := registry.Lookup(kind); ok {
			scratch.Handle(kind, h)
		}
	}
	return addHandlers(scratch, c)
}

// kinds are those that have a handler, in Go or in the configuration.
func kinds(registry *job.Registry, c *config.Config) []string {
	all := registry.Kinds()
	for kind := range c.Handlers {
		all = append(all, kind)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func describeHandlers(registry *job.Registry, c *config.Config) string {
	all := kinds(registry, c)
	if len(all) == 0 {
		return "nothing: add handlers to the configuration, or build a binary with Go handlers; every job would fail"
	}
	for i, kind := range all {
		if h, ok := c.Handlers[kind]; ok {
			all[i] += " (" + config.Masked(strings.Join(h.Exec, " ")) + ")"
		} else {
			all[i] += " (Go)"
		}
	}
	return strings.Join(all, ", ")
}
