package app

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"sync"

	"github.com/postburner/postburner/config"
	"github.com/postburner/postburner/worker/swarm"
)

// shared is the configuration that a reload may replace.
type shared struct {
	mu sync.Mutex // guards c
	c  *config.Config
}

func (s *shared) get() *config.Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.c
}

func (s *shared) set(c *config.Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.c = c
}

// workForked runs the parent of a swarm.
func (p *program) workForked(ctx context.Context, c *config.Config, s *settings, signals *signals, notifier *notifier, out io.Writer, logger *slog.Logger) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	path, err := executable()
	if err != nil {
		return err
	}
	current := &shared{c: c}
	var forked *swarm.Swarm
	opts := swarmOptions(c, logger)
	opts.Command = func(slot int) (*exec.Cmd, error) { return childExec(present(path, logger), current.get(), slot), nil }
	opts.Config = func(int) ([]byte, error) { return json.Marshal(childConfig{Config: current.get()}) }
	opts.Observer = notifier.observe
	opts.Pulse = func() { notifier.isWell(summary(forked.Status())) }
	forked, err = swarm.New(opts)
	if err != nil {
		return err
	}
	stopping, killed := false, false
	signals.handle(logger, func(kind signalKind) {
		switch kind {
		case signalStop:
			if stopping {
				logger.Warn("second signal: killing the children; running jobs go back to beanstalkd")
				killed = true
				forked.Kill()
				return
			}
			stopping = true
			notifier.isStopping()
			tellStopping(c, logger)
			cancel()
		case signalQuiet:
			logger.Info("quiet: running jobs finish, no more are taken")
			forked.Quiet()
		case signalRestart:
			notifier.isReloading()
			if p.reload(current, s, logger) {
				forked.Restart()
			} else {
				notifier.isReloaded()
			}
		case signalReopen:
			reopenLog(out, logger)
			forward(kind, pids(forked.Status()), logger)
		case signalDump:
			forward(kind, pids(forked.Status()), logger)
		}
	})
	err = forked.Run(ctx)
	signals.stop()
	if err != nil {
		return err
	}
	if killed {
		return &exitError{code: ExitFailure}
	}
	logger.Info("worker stopped")
	return nil
}

// childExec is the command line of a child; what it says is for those who look at ps.
func childExec(path string, c *config.Config, slot int) *exec.Cmd {
	cmd := exec.Command(path, "child", "--env", c.Environment, "--worker", c.WorkerName, "--slot", strconv.Itoa(slot)) //nolint:noctx // the swarm ends it
	cmd.Args[0] = os.Args[0]
	return cmd
}

func pids(s swarm.Status) []int {
	var all []int
	for _, slot := range s.Slots {
		for _, child := range slot.Children {
			if child.PID > 0 {
				all = append(all, child.PID)
			}
		}
	}
	return all
}
