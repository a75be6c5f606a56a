package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/postburner/postburner/config"
	"github.com/postburner/postburner/worker"
	"github.com/postburner/postburner/worker/swarm"
)

func (p *program) workCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "work",
		Short: "Run a worker",
		Long: `Run a worker: forks child processes, each with threads jobs at once.

Signals: TERM and INT stop it, letting running jobs finish within shutdown_timeout; a
second one ends it at once. TSTP makes it quiet: running jobs finish, no more are
taken. USR1 reads the configuration again and replaces the children one by one. TTIN
writes the stack of every goroutine to the log. HUP and USR2 are ignored.

Exit codes: 0 stopped as asked, 1 failure, 2 command line, 78 configuration, 99 with
forks: 0 after gc_limit jobs.`,
		Example: `  postburner work --env production --worker default
  postburner work --forks 2 --threads 5 --queues critical,default`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.work(cmd.Context(), &s) },
	}
	s.workerFlags(cmd)
	return cmd
}

func (p *program) work(ctx context.Context, s *settings) error {
	signals := trap()
	defer signals.stop()
	c, err := s.load()
	if err != nil {
		return failed(err)
	}
	logger := newLogger(p.Stderr, c.Log)
	registry := p.Registry
	if c.Worker.Forks == 0 {
		err = addHandlers(registry, c)
	} else { // the children add them; here they are only checked
		err = checkHandlers(registry, c)
	}
	if err != nil {
		return failed(err)
	}
	stop, err := startEmbedded(c, logger)
	if err != nil {
		return failed(err)
	}
	defer stop()
	logger.Info("worker starts", "version", versionOf().Version, "environment", c.Environment, "worker", c.WorkerName, "tubes", c.Tubes(),
		"forks", c.Worker.Forks, "threads", c.Worker.Threads, "kinds", kinds(registry, c))
	if c.Worker.Forks == 0 {
		return p.workAlone(ctx, c, signals, logger)
	}
	return p.workForked(ctx, c, s, signals, logger)
}

// workAlone is forks: 0.
func (p *program) workAlone(ctx context.Context, c *config.Config, signals *signals, logger *slog.Logger) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pool, err := worker.New(poolOptions(c, p.Registry, logger))
	if err != nil {
		return failed(err)
	}
	stopping := false
	go signals.handle(logger, func(s signalKind) {
		switch s {
		case signalStop:
			if stopping {
				logger.Warn("second signal: ending at once; running jobs go back to beanstalkd")
				os.Exit(ExitFailure)
			}
			stopping = true
			logger.Info("stopping: running jobs finish, no more are taken", "shutdown_timeout", c.Worker.ShutdownTimeout)
			cancel()
		case signalQuiet:
			logger.Info("quiet: running jobs finish, no more are taken")
			pool.Quiet()
		case signalRestart:
			logger.Warn("nothing to replace: with forks: 0 there are no children")
		}
	})
	return p.ended(workHere(ctx, c, pool, logger), logger)
}

// ended turns how a pool ended into how the process does.
func (p *program) ended(err error, logger *slog.Logger) error {
	switch {
	case errors.Is(err, worker.ErrLimit):
		logger.Info("gc_limit is reached: this process is to be started again")
		return &exitError{code: ExitRecycled}
	case err != nil:
		logger.Error("worker ended", "error", err)
		return &exitError{code: ExitFailure}
	}
	logger.Info("worker stopped")
	return nil
}

// workForked runs the parent of a swarm.
func (p *program) workForked(ctx context.Context, c *config.Config, s *settings, signals *signals, logger *slog.Logger) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	current := newShared(c)
	forked, err := swarm.New(swarm.Options{
		Forks: c.Worker.Forks, Threads: c.Worker.Threads, MemoryLimit: c.Worker.MemoryLimit,
		BootTimeout: c.Worker.BootTimeout, LivenessTimeout: c.Worker.LivenessTimeout, ShutdownTimeout: c.Worker.ShutdownTimeout,
		Command: func(slot int) (*exec.Cmd, error) { return childOf(current.get(), slot) },
		Config:  func(int) ([]byte, error) { return json.Marshal(childConfig{Config: current.get()}) },
		Logger:  logger,
	})
	if err != nil {
		return failed(err)
	}
	stopping, killed := false, false
	go signals.handle(logger, func(kind signalKind) {
		switch kind {
		case signalStop:
			if stopping {
				logger.Warn("second signal: killing the children; running jobs go back to beanstalkd")
				killed = true
				forked.Kill()
				return
			}
			stopping = true
			logger.Info("stopping: running jobs finish, no more are taken", "shutdown_timeout", c.Worker.ShutdownTimeout)
			cancel()
		case signalQuiet:
			logger.Info("quiet: running jobs finish, no more are taken")
			forked.Quiet()
		case signalRestart:
			if reload(current, s, logger) {
				forked.Restart()
			}
		}
	})
	err = forked.Run(ctx)
	signals.stop()
	if err != nil {
		return failed(err)
	}
	if killed {
		return &exitError{code: ExitFailure}
	}
	logger.Info("worker stopped")
	return nil
}

// childOf is the command line of a child. The executable is resolved anew each time, so
// that a rolling restart starts what has been installed meanwhile.
func childOf(c *config.Config, slot int) (*exec.Cmd, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.Command(path, "child", "--env", c.Environment, "--worker", c.WorkerName, "--slot", strconv.Itoa(slot)) //nolint:noctx // the swarm ends it
	cmd.Args[0] = os.Args[0]
	return cmd, nil
}

// reload reads the configuration again; a bad one changes nothing.
func reload(current *shared, s *settings, logger *slog.Logger) bool {
	fresh, err := s.load()
	if err != nil {
		logger.Error("the configuration is not taken over, nothing changes", "error", err)
		return false
	}
	old := current.get()
	if fresh.Worker.Forks != old.Worker.Forks || fresh.Worker.Threads != old.Worker.Threads {
		logger.Warn("forks and threads change only when the worker itself is started anew")
		fresh.Worker.Forks, fresh.Worker.Threads = old.Worker.Forks, old.Worker.Threads
	}
	current.set(fresh)
	return true
}
