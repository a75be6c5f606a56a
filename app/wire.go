package app

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/client"
	"github.com/postburner/postburner/config"
	"github.com/postburner/postburner/job"
	"github.com/postburner/postburner/relay"
	"github.com/postburner/postburner/scheduler"
	"github.com/postburner/postburner/worker"
	"github.com/postburner/postburner/worker/swarm"
)

// What the configuration means for the packages stands in this file alone.

// serverURL returns the address of the server.
func (p *program) serverURL(c *config.Config) string {
	if c.BeanstalkURL == config.Embedded {
		return "beanstalk://" + p.embeddedAddr
	}
	return c.BeanstalkURL
}

// addHandlers adds the programs of the configuration to the registry. Its error is config.Problems.
func addHandlers(registry *job.Registry, c *config.Config) error {
	var problems config.Problems
	taken := registry.Kinds()
	for _, kind := range slices.Sorted(maps.Keys(c.Handlers)) {
		words := c.Handlers[kind].Exec
		problem := config.Problem{File: c.File, Path: c.Environment + ".handlers." + kind + ".exec"}
		problem.Line, problem.Column, _ = c.Place("handlers." + kind + ".exec")
		program := &relay.Exec{Program: words[0], Args: words[1:], Environment: c.Environment}
		if slices.Contains(taken, kind) {
			problem.Message = fmt.Sprintf("kind %s has a handler in Go already; name another kind, or remove one of them", kind)
			problems = append(problems, problem)
			continue
		}
		if err := program.Check(); err != nil {
			problem.Message = err.Error()
			problems = append(problems, problem)
			continue
		}
		registry.Handle(kind, program)
	}
	if len(problems) > 0 {
		return problems
	}
	return nil
}

func (p *program) beanstalkOptions(c *config.Config) beanstalk.Options {
	return beanstalk.Options{URL: p.serverURL(c)}
}

func (p *program) poolOptions(c *config.Config, logger *slog.Logger) worker.Options {
	return worker.Options{
		Beanstalk: p.beanstalkOptions(c), Tubes: c.Tubes(), Registry: p.Registry, Threads: c.Worker.Threads, Limit: c.Worker.GCLimit,
		ReserveTimeout: c.Worker.Timeout, ShutdownTimeout: c.Worker.ShutdownTimeout, MaxRuntime: c.Worker.MaxRuntime,
		Retry: c.Retry, PoisonDeaths: c.Worker.PoisonDeaths, PoisonReserves: c.Worker.PoisonReserves, Vigilant: true, Observer: eventLog(logger), Logger: logger,
	}
}

func (p *program) schedulerOptions(c *config.Config, logger *slog.Logger) scheduler.Options {
	return scheduler.Options{
		Beanstalk: p.beanstalkOptions(c), Tube: c.SchedulerTube(), Interval: c.Scheduler.Interval,
		Priority: c.Scheduler.Priority, Timeout: c.Worker.Timeout, Logger: logger,
	}
}

// swarmOptions lacks what makes a child: Command and Config.
func swarmOptions(c *config.Config, logger *slog.Logger) swarm.Options {
	return swarm.Options{
		Forks: c.Worker.Forks, Threads: c.Worker.Threads, MemoryLimit: c.Worker.MemoryLimit, BootTimeout: c.Worker.BootTimeout,
		LivenessTimeout: c.Worker.LivenessTimeout, ShutdownTimeout: c.Worker.ShutdownTimeout, Logger: logger,
	}
}

// newClient enqueues for an environment.
func (p *program) newClient(c *config.Config) (*client.Client, error) {
	return client.New(client.Options{
		URL: p.serverURL(c), Environment: c.Environment, DefaultQueue: c.DefaultQueue, DefaultPriority: &c.DefaultPriority, DefaultTTR: c.DefaultTTR,
	})
}
