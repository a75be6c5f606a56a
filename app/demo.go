package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/postburner/postburner/broker"
	"github.com/postburner/postburner/client"
	"github.com/postburner/postburner/config"
	"github.com/postburner/postburner/job"
	"github.com/postburner/postburner/retry"
	"github.com/postburner/postburner/worker/swarm"
)

// The demonstration: so many jobs of each sort, and what has to come of them.
const (
	demoJobs     = 1000
	demoFailOnce = 40 // of them
	demoFail     = 9  // of them, always
	demoPanic    = 1  // of them, always
	demoRetries  = 1
	demoForks    = 2
	demoThreads  = 5
	demoLimit    = 100
	demoTime     = 30 * time.Second

	demoBuried     = demoFail + demoPanic
	demoDone       = demoJobs - demoBuried
	demoRetried    = demoFailOnce + demoBuried*demoRetries
	demoExecutions = demoJobs + demoRetried
)

func (p *program) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Show the main job on the embedded broker; nothing else is needed",
		Long: `Show the main job: a worker with 2 child processes × 5 threads, each child replaced
after 100 jobs, runs 1,000 jobs on the embedded broker. Some of them fail once, some always,
and one panics. It ends within 30 s with a summary, and with exit code 1 if
the numbers do not add up.`,
		Example: "  postburner demo",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return p.demo(cmd.Context()) },
	}
}

// demoArgs are the arguments of every job of the demonstration.
type demoArgs struct {
	N int `json:"n"`
}

// demoKind is a job of one sort.
type demoKind struct {
	demoArgs
	kind string
}

// Kind names the sort.
func (d demoKind) Kind() string { return d.kind }

// MarshalJSON writes the arguments alone.
func (d demoKind) MarshalJSON() ([]byte, error) { return json.Marshal(d.demoArgs) }

// addDemoHandlers registers the handlers. Each execution is one letter in the journal.
func addDemoHandlers(registry *job.Registry, journal string) {
	file, err := os.OpenFile(journal, os.O_APPEND|os.O_WRONLY, 0o600)
	note := func(letter string) error {
		if err != nil {
			return err
		}
		_, err := file.WriteString(letter)
		return err
	}
	handle := func(kind string, f func(ctx context.Context, j *job.Job) error) {
		registry.Handle(kind, job.HandlerFunc(func(ctx context.Context, j *job.Job) error {
			timer := time.NewTimer(5 * time.Millisecond) // something to do
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			return f(ctx, j)
		}))
	}
	handle("demo.succeed", func(context.Context, *job.Job) error { return note("s") })
	handle("demo.fail_once", func(ctx context.Context, j *job.Job) error {
		attempt, err := j.Attempt(ctx)
		if err != nil {
			return err
		}
		if attempt == 1 {
			return errors.Join(note("f"), errors.New("fails once"))
		}
		return note("s")
	})
	handle("demo.fail", func(context.Context, *job.Job) error { return errors.Join(note("f"), errors.New("fails always")) })
	handle("demo.panic", func(context.Context, *job.Job) error {
		if err := note("p"); err != nil {
			return err
		}
		panic("panics always")
	})
}

// demonstration is one run of it.
type demonstration struct {
	*program
	config   *config.Config
	broker   *broker.Broker
	journal  string
	recycled atomic.Int64
	died     atomic.Int64
	started  time.Time
}

func (p *program) demo(ctx context.Context) error {
	signals := trap()
	defer signals.stop()
	ctx, cancel := context.WithTimeout(ctx, demoTime)
	defer cancel()
	dir, err := os.MkdirTemp("", "postburner-demo-")
	if err != nil {
		return failed(err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // a folder for temporary files
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return failed(err)
	}
	defer func() { _ = log.Close() }() // goes with its folder
	logger := newLogger(log, config.Log{Level: "info", Format: "text"})
	go signals.handle(logger, func(s signalKind) {
		if s == signalStop {
			cancel()
		}
	})
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return failed(err)
	}
	d := &demonstration{program: p, broker: broker.New(broker.Options{}), journal: filepath.Join(dir, "journal"), started: time.Now()}
	stop := serve(d.broker, listener, logger)
	defer stop()
	if err := os.WriteFile(d.journal, nil, 0o600); err != nil {
		return failed(err)
	}
	if d.config, err = demoConfig(listener.Addr().String()); err != nil {
		return failed(err)
	}
	if err := d.run(ctx, log); err != nil {
		text, readErr := os.ReadFile(log.Name())
		p.complain("%s", lastLines(text, 20))
		return failed(errors.Join(err, readErr))
	}
	return nil
}

func demoConfig(addr string) (*config.Config, error) {
	flags := map[string]string{
		"beanstalk_url": "beanstalk://" + addr, "forks": fmt.Sprint(demoForks), "threads": fmt.Sprint(demoThreads), "gc_limit": fmt.Sprint(demoLimit),
		"shutdown_timeout": "5", "timeout": "1", "retry.max_retries": fmt.Sprint(demoRetries), "retry.exhausted": string(retry.Bury),
	}
	nothing := func(string) (string, bool) { return "", false }
	return config.Load(config.Source{NoFile: true, Environment: "development", Flags: flags, Lookup: nothing})
}

func (d *demonstration) run(ctx context.Context, log io.Writer) error {
	forked, err := swarm.New(swarm.Options{
		Forks: demoForks, Threads: demoThreads, ShutdownTimeout: d.config.Worker.ShutdownTimeout,
		Command: func(slot int) (*exec.Cmd, error) {
			cmd, err := childOf(d.config, slot)
			if err == nil {
				cmd.Stderr = log
			}
			return cmd, err
		},
		Config: func(int) ([]byte, error) {
			return json.Marshal(childConfig{Config: d.config, DemoJournal: d.journal})
		},
		Observer: d.observe,
		Logger:   newLogger(log, config.Log{Level: "info", Format: "text"}),
	})
	if err != nil {
		return err
	}
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	worked := make(chan error, 1)
	go func() { worked <- forked.Run(working) }()
	err = d.enqueue(ctx)
	if err == nil {
		err = d.watch(ctx)
	}
	stop()
	if err = errors.Join(err, <-worked); err != nil {
		return err
	}
	return d.sum()
}

func (d *demonstration) observe(e swarm.Event) {
	if e.Type != swarm.EventExited {
		return
	}
	switch e.Exit.Code {
	case swarm.ExitRecycled:
		d.recycled.Add(1)
	case 0:
	default:
		d.died.Add(1)
	}
}

func (d *demonstration) enqueue(ctx context.Context) error {
	enqueuer, err := newClient(d.config)
	if err != nil {
		return err
	}
	defer func() { _ = enqueuer.Close() }() // always nil
	items := make([]client.Item, demoJobs)
	for i := range items {
		kind := "demo.succeed"
		switch {
		case i%25 == 0:
			kind = "demo.fail_once"
		case i%111 == 1:
			kind = "demo.fail"
		case i == 500+1:
			kind = "demo.panic"
		}
		items[i] = client.Item{Args: demoKind{demoArgs{i}, kind}}
	}
	_, err = enqueuer.EnqueueMany(ctx, items)
	return err
}

// watch shows how far it is until every job is done or buried.
func (d *demonstration) watch(ctx context.Context) error {
	bar := newProgress(d.Stderr, "done or buried", demoJobs)
	defer bar.end()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for settled := 0; ; {
		buried, left := d.tube()
		now := demoJobs - left + buried
		bar.add(now - settled)
		bar.count(now)
		settled = now
		if left == buried {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("stopped with %d of %d jobs done or buried: %w", settled, demoJobs, ctx.Err())
		}
	}
}

// tube returns how many jobs the server has buried, and how many it has at all.
func (d *demonstration) tube() (buried, all int) {
	jobs := d.broker.Jobs(d.config.Tube(d.config.DefaultQueue))
	for _, j := range jobs {
		if j.State == "buried" {
			buried++
		}
	}
	return buried, len(jobs)
}

// sum prints the summary and compares what the handlers wrote, what the server holds and
// how the children ended with what has to come of the jobs.
func (d *demonstration) sum() error {
	took := time.Since(d.started)
	journal, err := os.ReadFile(d.journal)
	if err != nil {
		return err
	}
	succeeded := bytes.Count(journal, []byte("s"))
	executions := len(journal)
	buried, left := d.tube()
	recycled := int(d.recycled.Load())
	retried := executions - succeeded - buried
	if err := d.print(`done      %5d
retried   %5d
buried    %5d
recycled  %5d children, each after %d jobs, with exit code %d
speed     %5.0f jobs/s, 5 ms each, %d at once
`, succeeded, retried, buried, recycled, demoLimit, ExitRecycled, float64(executions)/took.Seconds(), demoForks*demoThreads); err != nil {
		return err
	}
	var problems []error
	for _, n := range []struct {
		what      string
		got, want int
	}{
		{"jobs done by the handlers", succeeded, demoDone},
		{"executions of the handlers", executions, demoExecutions},
		{"jobs buried on the server", buried, demoBuried},
		{"jobs left on the server", left, demoBuried},
		{"children that died", int(d.died.Load()), 0},
	} {
		if n.got != n.want {
			problems = append(problems, fmt.Errorf("%s: %d, want %d", n.what, n.got, n.want))
		}
	}
	// The children that were left at the end have started fewer than the limit each.
	if most := demoExecutions / demoLimit; recycled > most || recycled < most-demoForks+1 {
		problems = append(problems, fmt.Errorf("children recycled: %d, want %d to %d", recycled, most-demoForks+1, most))
	}
	if len(problems) > 0 {
		return fmt.Errorf("the numbers do not add up:\n%w", errors.Join(problems...))
	}
	return nil
}

func lastLines(text []byte, n int) []byte {
	at := len(text)
	for ; n >= 0 && at > 0; n-- {
		at = bytes.LastIndexByte(text[:at], '\n')
	}
	return text[max(at, 0):]
}
