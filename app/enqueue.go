package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/postburner/postburner/client"
	"github.com/postburner/postburner/config"
)

func (p *program) enqueueCommand() *cobra.Command {
	var (
		s      settings
		spec   jobSpec
		file   string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "enqueue KIND",
		Short: "Put a job, or a file of jobs",
		Long: `Put one job and print where it is. With --file put many: each line of the file is a
JSON object with kind, args and, as needed, queue, delay, at, priority, ttr,
max_retries, tracked, expires_at, metadata, job_id. KIND and the flags are the defaults
for what a line leaves out. - reads standard input. A bad line is reported with its
number and keeps no other back; when the server is lost, or at INT, it ends and says
where to go on.

Times to wait are seconds, or text such as 90s; points in time are RFC 3339.

Exit codes: 0 all are enqueued, 1 some are not, 2 command line, 78 configuration.`,
		Example: `  postburner enqueue SendEmail --args '{"user_id": 7}' --queue mailers --delay 1m
  postburner enqueue SendEmail --args '{"user_id": 7}' --at 2026-12-24T18:00:00Z --json
  postburner enqueue --file jobs.jsonl`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, positional []string) error {
			// With SIGPIPE trapped a closed output is an error like others, and what is enqueued can still be told.
			pipe := make(chan os.Signal, 1)
			signal.Notify(pipe, syscall.SIGPIPE)
			defer signal.Stop(pipe)
			if len(positional) == 1 {
				spec.Kind = positional[0]
			}
			if file != "" {
				if spec.JobID != "" {
					return usage(errors.New("--job-id names one job, --file many: say job_id in the lines"))
				}
				return p.enqueueFile(cmd.Context(), &s, spec, file, asJSON)
			}
			return p.enqueueOne(cmd.Context(), &s, spec, asJSON)
		},
	}
	s.source.AnyWorker = true
	p.sourceFlags(&s, cmd)
	spec.flags(cmd.Flags())
	cmd.Flags().StringVar(&file, "file", "", "`file` of jobs, a JSON object a line; - is standard input")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print receipts as JSON, one a line")
	return cmd
}

// flags adds a flag for each thing that there is to say of a job. One that is not given leaves its field as it is.
func (s *jobSpec) flags(f *pflag.FlagSet) {
	f.Func("args", "arguments, a `JSON` object (default {})", func(text string) error {
		var parsed any
		if err := json.Unmarshal([]byte(text), &parsed); err != nil {
			return fmt.Errorf("not JSON: %w", err)
		}
		s.Args = json.RawMessage(text)
		return nil
	})
	f.StringVar(&s.Queue, "queue", "", "`queue` (default default_queue of the configuration)")
	f.Func("delay", "`time` to wait", setDuration(&s.Delay))
	f.Func("at", "`time` to wait for", setTime(&s.At))
	f.Func("priority", "`priority`; 0 is first (default default_priority of the configuration)", func(text string) error {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return errors.New("want 0 to 4294967295")
		}
		s.Priority = new(uint32)
		*s.Priority = uint32(n)
		return nil
	})
	f.Func("ttr", "`time` that a worker may be silent (default default_ttr of the configuration)", setDuration(&s.TTR))
	f.Func("max-retries", "this job's own `limit` of retries (default max_retries of the worker's configuration)", func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil {
			return errors.New("want a number")
		}
		s.MaxRetries = &n
		return nil
	})
	f.BoolFunc("tracked", "bury the job at its first failure", func(text string) error {
		tracked, err := strconv.ParseBool(text)
		s.Tracked = &tracked
		return err
	})
	f.Func("expires-at", "discard the job if no worker has it by this `time`", setTime(&s.ExpiresAt))
	f.StringToStringVar(&s.Metadata, "metadata", nil, "`key=value` that travels with the job")
	f.StringVar(&s.JobID, "job-id", "", "`identity` of the job (default a new UUID)")
}

func setDuration(dst **seconds) func(string) error {
	return func(text string) error {
		var d seconds
		if err := d.Set(text); err != nil {
			return err
		}
		*dst = &d
		return nil
	}
}

func setTime(dst **time.Time) func(string) error {
	return func(text string) error {
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return errors.New("want RFC 3339, such as 2026-12-24T18:00:00Z")
		}
		*dst = &t
		return nil
	}
}

// enqueueOne puts the job that the command line describes.
func (p *program) enqueueOne(ctx context.Context, s *settings, spec jobSpec, asJSON bool) error {
	if spec.Kind == "" {
		return usage(errors.New("name a KIND, or a --file of jobs"))
	}
	if err := spec.check(); err != nil {
		return usage(err)
	}
	c, err := s.load()
	if err != nil {
		return err
	}
	enqueuer, err := p.newClient(c)
	if err != nil {
		return err
	}
	defer func() { _ = enqueuer.Close() }() // always nil
	it := spec.item()
	receipt, err := enqueuer.Enqueue(ctx, it.Args, it.Options...)
	if _, badQueue := errors.AsType[*client.InvalidQueueError](err); badQueue {
		return usage(err)
	}
	if errors.Is(err, client.ErrUnknownOutcome) {
		return fmt.Errorf("%w; its job_id is %s", err, receipt.JobID)
	}
	if err != nil {
		return withHint(c, err)
	}
	if asJSON {
		err = p.printJSON(receipt)
	} else {
		err = p.print("enqueued job %s as %d in %s\n", receipt.JobID, receipt.BeanstalkID, receipt.Tube)
	}
	if err != nil {
		return fmt.Errorf("job %s is enqueued, but its receipt cannot be printed: %w", receipt.JobID, err)
	}
	return nil
}

// withHint adds what to do where nothing runs yet.
func withHint(c *config.Config, err error) error {
	if c.BeanstalkURL == config.Embedded && errors.Is(err, client.ErrNotSent) {
		return fmt.Errorf("%w\nthe environment %s uses the embedded broker, which `postburner work` or `postburner broker` runs: start one of them first", err, c.Environment)
	}
	return err
}
