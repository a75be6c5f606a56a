package app

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/postburner/postburner/config"
)

// settings are the flags that choose and override a configuration.
type settings struct {
	source config.Source
	flags  *pflag.FlagSet
	keys   map[string]string // flag → path of the key
}

// sourceFlags adds the flags that choose a configuration.
func (p *program) sourceFlags(s *settings, cmd *cobra.Command) {
	s.source.Lookup = p.LookupEnv
	s.flags = cmd.Flags()
	s.keys = map[string]string{}
	s.flags.StringVar(&s.source.Path, "config", "", "configuration `file` (default config/postburner.yml, else postburner.yml)")
	s.flags.StringVar(&s.source.Environment, "env", "", "`environment` (default $POSTBURNER_ENV, else development)")
}

// workerFlags adds those that choose and override a worker.
func (p *program) workerFlags(s *settings, cmd *cobra.Command) {
	p.sourceFlags(s, cmd)
	s.flags.StringVar(&s.source.Worker, "worker", "", "`name` of the worker (default: the only one there is, else default)")
	for _, f := range []struct{ name, path, help string }{
		{"beanstalk-url", "beanstalk_url", "`URL` of beanstalkd, or embedded"},
		{"queues", "queues", "`queues` to work on, separated by commas"},
		{"forks", "forks", "`number` of child processes; 0: everything in this process"},
		{"threads", "threads", "`number` of jobs at once in each process"},
		{"gc-limit", "gc_limit", "`number` of jobs after which a process is replaced"},
		{"memory-limit", "memory_limit", "`size` of a child, such as 512MB, at which it is replaced"},
		{"timeout", "timeout", "`time` that a reserve waits"},
		{"shutdown-timeout", "shutdown_timeout", "`time` that running jobs have after TERM"},
		{"max-runtime", "max_runtime", "`time` that one execution may take"},
		{"log-level", "log.level", "`level`: debug, info, warn or error"},
		{"log-format", "log.format", "`format`: text or json"},
	} {
		s.flags.String(f.name, "", f.help)
		s.keys[f.name] = f.path
	}
}

// load reads the configuration that the flags choose.
func (s *settings) load() (*config.Config, error) {
	s.source.Flags = map[string]string{}
	s.flags.Visit(func(f *pflag.Flag) {
		if path, ok := s.keys[f.Name]; ok {
			s.source.Flags[path] = f.Value.String()
		}
	})
	return config.Load(s.source)
}
