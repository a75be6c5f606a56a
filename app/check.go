package app

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/postburner/postburner/config"
	"github.com/postburner/postburner/job"
)

func (p *program) checkCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check the configuration and print it",
		Long: `Check the configuration as work would, with the same flags, and print what is in
force: each value with where it comes from, secrets masked, then the tubes that would
be watched and the kinds that have a handler. Nothing is started or connected.

Exit codes: 0 it is good, 78 it is not; every problem is printed.`,
		Example: "  postburner check --env production --worker default",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			c, err := s.load()
			if err != nil {
				return err
			}
			if err := checkHandlers(p.Registry, c); err != nil {
				return err
			}
			text, err := c.Effective()
			if err != nil {
				return err
			}
			return p.print("%s\n# watches: %s\n# watchdog: %s\n# handles: %s\n", text, strings.Join(c.Tubes(), " "), c.SchedulerTube(), describeHandlers(p.Registry, c))
		},
	}
	p.workerFlags(&s, cmd)
	return cmd
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
			all[i] += " (" + strings.Join(h.Exec, " ") + ")"
		} else {
			all[i] += " (Go)"
		}
	}
	return strings.Join(all, ", ")
}
