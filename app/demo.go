package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/postburner/postburner/broker"
	"github.com/postburner/postburner/config"
	"github.com/postburner/postburner/retry"
	"github.com/postburner/postburner/worker/swarm"
)

const (
	demoForks   = 2
	demoThreads = 5
	demoLimit   = 100 // gc_limit
	demoTime    = 25 * time.Second
)

func (p *program) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Show the main job on the embedded broker; nothing else is needed",
		Long: `Show the main job: a worker with 2 child processes × 5 threads, each child replaced
after 100 jobs, runs 1,000 jobs on the embedded broker. Some of them fail once, some
always, and one panics. It ends within 30 s with a summary, and with exit code 1 if
the numbers do not add up.`,
		Example: "  postburner demo",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return p.demo(cmd.Context()) },
	}
}

var errDemoStopped = errors.New("the demonstration was stopped before it was done")

// demonstration is one run of it.
type demonstration struct {
	*program
	config  *config.Config
	journal string       // file
	log     io.Writer    // of the parent and the children
	logger  *slog.Logger // on log

	forked   *swarm.Swarm
	recycled atomic.Int64 // children that ended with 99
	died     atomic.Int64 // children that ended otherwise than asked to
	stopping bool         // only observe looks at it
	started  time.Time
}

func (p *program) demo(ctx context.Context) error {
	signals := trap()
	ctx, late := context.WithTimeoutCause(ctx, demoTime, fmt.Errorf("not done within %v", demoTime))
	defer late()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	dir, err := os.MkdirTemp("", "postburner-demo-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a folder for temporary files
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // goes with its folder
	d := &demonstration{program: p, journal: filepath.Join(dir, "journal"), log: log, logger: newLogger(log, config.Log{Level: "info"})}
	signals.handle(d.logger, func(s signalKind) {
		if s == signalStop {
			cancel(errDemoStopped)
		}
	})
	defer signals.stop()
	err = d.run(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(context.Cause(ctx), errDemoStopped):
		return errDemoStopped
	}
	text, readErr := os.ReadFile(log.Name())
	p.complain("%s", lastLines(text, 20))
	return errors.Join(err, readErr)
}

// run starts a server and a worker, and has them do the jobs.
func (d *demonstration) run(ctx context.Context) error {
	if err := os.WriteFile(d.journal, nil, 0o600); err != nil {
		return err
	}
	listener, err := listen(ctx, "127.0.0.1:0", "try again")
	if err != nil {
		return err
	}
	stopServing := serve(broker.New(broker.Options{}), listener, d.logger)
	defer stopServing()
	if d.config, err = demoConfig(listener.Addr().String()); err != nil {
		return err
	}
	if d.forked, err = d.swarm(); err != nil {
		return err
	}
	s, err := newScoreboard(d)
	if err != nil {
		return err
	}
	defer s.close()
	d.started = time.Now()
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	worked := make(chan error, 1)
	go func() { worked <- d.forked.Run(working) }()
	err = d.enqueue(ctx)
	if err == nil {
		err = s.watch(ctx)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	took := time.Since(d.started)
	stop()
	if err = errors.Join(err, <-worked); err != nil {
		return err
	}
	return s.sum(context.WithoutCancel(ctx), took)
}

func demoConfig(addr string) (*config.Config, error) {
	flags := map[string]string{
		"beanstalk_url": "beanstalk://" + addr, "forks": fmt.Sprint(demoForks), "threads": fmt.Sprint(demoThreads), "gc_limit": fmt.Sprint(demoLimit),
		"shutdown_timeout": "5", "timeout": "1", "retry.max_retries": fmt.Sprint(demoRetries), "retry.exhausted": string(retry.Bury),
	}
	nothing := func(string) (string, bool) { return "", false }
	return config.Load(config.Source{NoFile: true, Environment: "development", Flags: flags, Lookup: nothing})
}

func (d *demonstration) swarm() (*swarm.Swarm, error) {
	path, err := executable()
	if err != nil {
		return nil, err
	}
	opts := swarmOptions(d.config, d.logger)
	opts.Command = func(slot int) (*exec.Cmd, error) {
		cmd := childExec(path, d.config, slot)
		cmd.Stderr = d.log
		return cmd, nil
	}
	opts.Config = func(int) ([]byte, error) { return json.Marshal(childConfig{Config: d.config, DemoJournal: d.journal}) }
	opts.Observer = d.observe
	return swarm.New(opts)
}

// observe counts how children end. A replacement may be stopped before it can trap TERM.
func (d *demonstration) observe(e swarm.Event) {
	switch {
	case e.Type == swarm.EventStopping:
		d.stopping = true
	case e.Type != swarm.EventExited, e.Exit.Code == 0, d.stopping && e.Exit.Signal == "SIGTERM":
	case e.Exit.Code == swarm.ExitRecycled:
		d.recycled.Add(1)
	default:
		d.died.Add(1)
	}
}

func (d *demonstration) enqueue(ctx context.Context) error {
	enqueuer, err := d.newClient(d.config)
	if err != nil {
		return err
	}
	defer func() { _ = enqueuer.Close() }() // always nil
	_, err = enqueuer.EnqueueMany(ctx, demoItems())
	return err
}

// lastLines returns the end of a text.
func lastLines(text []byte, n int) []byte {
	lines := slices.Collect(bytes.Lines(text))
	return bytes.Join(lines[max(0, len(lines)-n):], nil)
}
