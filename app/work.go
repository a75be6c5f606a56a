package app

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/postburner/postburner/config"
	"github.com/postburner/postburner/scheduler"
	"github.com/postburner/postburner/worker"
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
writes the stack of every goroutine to the log. USR2 opens log.file anew. HUP is ignored.
As PID 1 of a container it passes signals on to a worker below it, and reaps orphans.

Exit codes: 0 stopped as asked, 1 failure, 2 command line, 78 configuration, 99 with
forks: 0 after gc_limit jobs.`,
		Example: `  postburner work --env production --worker default
  postburner work --forks 2 --threads 5 --queues critical,default`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.work(cmd.Context(), &s) },
	}
	p.workerFlags(&s, cmd)
	return cmd
}

func (p *program) work(ctx context.Context, s *settings) error {
	if os.Getpid() == 1 {
		return p.runAsInit()
	}
	signals := trap()
	c, err := s.load()
	if err != nil {
		return err
	}
	out, err := p.openLog(c.Log)
	if err != nil {
		return err
	}
	logger := newLogger(out, c.Log)
	if c.Worker.Forks == 0 {
		err = addHandlers(p.Registry, c)
	} else { // the children add them; here they are only checked
		err = checkHandlers(p.Registry, c)
	}
	if err != nil {
		return err
	}
	notifier := takeNotifier(logger)
	stop, err := p.startEmbedded(ctx, c, logger)
	if err != nil {
		return err
	}
	defer stop()
	handled := kinds(p.Registry, c)
	logger.Info("worker starts", "version", versionOf().Version, "environment", c.Environment, "worker", c.WorkerName, "tubes", c.Tubes(),
		"forks", c.Worker.Forks, "threads", c.Worker.Threads, "kinds", handled)
	if len(handled) == 0 {
		logger.Warn("no kind has a handler, so every job will fail: add handlers to the configuration, or build a binary with Go handlers")
	}
	if c.Worker.Forks == 0 {
		return p.workAlone(ctx, c, signals, notifier, out, logger)
	}
	return p.workForked(ctx, c, s, signals, notifier, out, logger)
}

// workAlone runs the pool in this process (forks: 0).
func (p *program) workAlone(ctx context.Context, c *config.Config, signals *signals, notifier *notifier, out io.Writer, logger *slog.Logger) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pool, err := worker.New(p.poolOptions(c, logger))
	if err != nil {
		return err
	}
	stopping := false
	signals.handle(logger, func(s signalKind) {
		switch s {
		case signalStop:
			if stopping {
				logger.Warn("second signal: ending at once; running jobs go back to beanstalkd")
				os.Exit(ExitFailure)
			}
			stopping = true
			notifier.isStopping()
			tellStopping(c, logger)
			cancel()
		case signalQuiet:
			logger.Info("quiet: running jobs finish, no more are taken")
			pool.Quiet()
		case signalRestart:
			logger.Warn("nothing to replace: with forks: 0 there are no children")
		case signalReopen:
			reopenLog(out, logger)
		}
	})
	stopTelling := notifier.tell(pool)
	err = p.consume(ctx, c, pool, logger)
	stopTelling()
	signals.stop()
	return exitFor(err, logger)
}

func tellStopping(c *config.Config, logger *slog.Logger) {
	logger.Info("stopping: running jobs finish, no more are taken", "shutdown_timeout", c.Worker.ShutdownTimeout)
}

// consume runs a pool, and a scheduler beside it, until ctx ends or the pool does.
func (p *program) consume(ctx context.Context, c *config.Config, pool *worker.Pool, logger *slog.Logger) error {
	s, err := scheduler.New(p.schedulerOptions(c, logger))
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

// exitFor turns how a pool ended into how the process does.
func exitFor(err error, logger *slog.Logger) error {
	switch {
	case errors.Is(err, worker.ErrLimit):
		logger.Info("gc_limit reached; exiting with 99 so that the process is started again")
		return &exitError{code: ExitRecycled}
	case err != nil:
		logger.Error("worker ended", "error", err)
		return &exitError{code: ExitFailure}
	}
	logger.Info("worker stopped")
	return nil
}
