package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/broker"
	"github.com/postburner/postburner/client"
	"github.com/postburner/postburner/config"
	"github.com/postburner/postburner/job"
	"github.com/postburner/postburner/relay"
	"github.com/postburner/postburner/scheduler"
	"github.com/postburner/postburner/worker"
)

// What the configuration means for the packages stands in this file alone.

// embeddedAddr is where the embedded broker listens: beanstalkd's own port, on this machine alone.
const embeddedAddr = "127.0.0.1:11300"

// serverURL returns the address of the server.
func serverURL(c *config.Config) string {
	if c.BeanstalkURL == config.Embedded {
		return "beanstalk://" + embeddedAddr
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
		if line, ok := c.Line("handlers." + kind + ".exec"); ok {
			problem.Line, problem.Column = line, 1
		}
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

func beanstalkOptions(c *config.Config) beanstalk.Options {
	return beanstalk.Options{URL: serverURL(c)}
}

func poolOptions(c *config.Config, registry *job.Registry, logger *slog.Logger) worker.Options {
	return worker.Options{
		Beanstalk: beanstalkOptions(c), Tubes: c.Tubes(), Registry: registry, Threads: c.Worker.Threads, Limit: c.Worker.GCLimit,
		ReserveTimeout: c.Worker.Timeout, ShutdownTimeout: c.Worker.ShutdownTimeout, MaxRuntime: c.Worker.MaxRuntime,
		Retry: c.Retry, Observer: eventLog(logger), Logger: logger,
	}
}

func schedulerOptions(c *config.Config, logger *slog.Logger) scheduler.Options {
	return scheduler.Options{
		Beanstalk: beanstalkOptions(c), Tube: c.SchedulerTube(), Interval: c.Scheduler.Interval,
		Priority: c.Scheduler.Priority, Timeout: c.Worker.Timeout, Logger: logger,
	}
}

// workHere runs a pool, and a scheduler beside it, until ctx ends or the pool does.
func workHere(ctx context.Context, c *config.Config, pool *worker.Pool, logger *slog.Logger) error {
	s, err := scheduler.New(schedulerOptions(c, logger))
	if err != nil {
		return err
	}
	scheduling, stop := context.WithCancel(ctx)
	defer stop()
	scheduled := make(chan error, 1)
	go func() { scheduled <- s.Run(scheduling) }()
	err = pool.Run(ctx)
	stop()
	return errors.Join(err, <-scheduled)
}

// startEmbedded starts the embedded broker, if the configuration asks for it; stop ends it.
func startEmbedded(c *config.Config, logger *slog.Logger) (stop func(), err error) {
	if c.BeanstalkURL != config.Embedded {
		return func() {}, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", embeddedAddr)
	if err != nil {
		return nil, fmt.Errorf("start the embedded broker: %w; if beanstalkd or another worker runs there, set beanstalk_url: beanstalk://%s to use it", err, embeddedAddr)
	}
	logger.Warn("the embedded broker is in use: jobs live in memory and end with this process; production needs beanstalkd", "listen", embeddedAddr)
	return serve(broker.New(broker.Options{}), listener, logger), nil
}

// serve has a broker serve in the background.
func serve(b *broker.Broker, listener net.Listener, logger *slog.Logger) (stop func()) {
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := b.Serve(context.Background(), listener); err != nil {
			logger.Error("the embedded broker ended", "error", err)
		}
	}()
	return func() {
		_ = b.Close() // always nil
		<-served
	}
}

// newClient enqueues for an environment.
func newClient(c *config.Config) (*client.Client, error) {
	return client.New(client.Options{
		URL: serverURL(c), Environment: c.Environment, DefaultQueue: c.DefaultQueue, DefaultPriority: &c.DefaultPriority, DefaultTTR: c.DefaultTTR,
	})
}
