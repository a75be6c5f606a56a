package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/postburner/postburner/client"
	"github.com/postburner/postburner/config"
)

// jobSpec is one job as the command line or a line of a file describes it.
type jobSpec struct {
	Kind       string            `json:"kind"`
	Args       json.RawMessage   `json:"args"`
	Queue      string            `json:"queue"`
	Delay      textDuration      `json:"delay"`
	At         time.Time         `json:"at"`
	Priority   *uint32           `json:"priority"`
	TTR        textDuration      `json:"ttr"`
	MaxRetries *int              `json:"max_retries"`
	Tracked    bool              `json:"tracked"`
	ExpiresAt  time.Time         `json:"expires_at"`
	Metadata   map[string]string `json:"metadata"`
	JobID      string            `json:"job_id"`
}

// textDuration is a number of seconds or text such as 90s, as in the configuration.
type textDuration time.Duration

// UnmarshalJSON reads either.
func (d *textDuration) UnmarshalJSON(text []byte) error {
	s := strings.Trim(string(text), `"`)
	return d.Set(s)
}

// Set reads a flag.
func (d *textDuration) Set(s string) error {
	var seconds float64
	if err := json.Unmarshal([]byte(s), &seconds); err == nil {
		*d = textDuration(seconds * float64(time.Second))
		return nil
	}
	parsed, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("%q is no duration: want seconds, or text such as 90s or 1h30m", s)
	}
	*d = textDuration(parsed)
	return nil
}

func (d *textDuration) String() string { return time.Duration(*d).String() }

// Type is what help calls the value.
func (d *textDuration) Type() string { return "duration" }

// item is what the client makes of it.
func (s *jobSpec) item() (client.Item, error) {
	if s.Kind == "" {
		return client.Item{}, errors.New("names no kind")
	}
	args := s.Args
	if args == nil {
		args = json.RawMessage("{}")
	}
	var options []client.Option
	add := func(given bool, option client.Option) {
		if given {
			options = append(options, option)
		}
	}
	add(s.Queue != "", client.Queue(s.Queue))
	add(s.Delay != 0, client.Delay(time.Duration(s.Delay)))
	add(!s.At.IsZero(), client.At(s.At))
	add(s.TTR != 0, client.TTR(time.Duration(s.TTR)))
	add(s.Tracked, client.Tracked())
	add(!s.ExpiresAt.IsZero(), client.ExpiresAt(s.ExpiresAt))
	add(s.JobID != "", client.JobID(s.JobID))
	if s.Priority != nil {
		options = append(options, client.Priority(*s.Priority))
	}
	if s.MaxRetries != nil {
		options = append(options, client.MaxRetries(*s.MaxRetries))
	}
	for key, value := range s.Metadata {
		options = append(options, client.Metadata(key, value))
	}
	return client.Item{Args: client.Raw{JobKind: s.Kind, Arguments: args}, Options: options}, nil
}

func (p *program) enqueueCommand() *cobra.Command {
	var (
		s                   settings
		spec                jobSpec
		args, at, expiresAt string
		file                string
		priority            uint32
		maxRetries          int
		asJSON              bool
	)
	cmd := &cobra.Command{
		Use:   "enqueue KIND",
		Short: "Put a job, or a file of jobs",
		Long: `Put one job and print where it is. With --file put many: each line of the file is a
JSON object with kind, args and, as needed, queue, delay, at, priority, ttr,
max_retries, tracked, expires_at, metadata, job_id. KIND and the flags are then what a line
does not say. - reads standard input.

Exit codes: 0 all are enqueued, 1 some are not, 2 command line, 78 configuration.`,
		Example: `  postburner enqueue SendEmail --args '{"user_id": 7}' --queue mailers --delay 1m
  postburner enqueue SendEmail --args '{"user_id": 7}' --at 2026-12-24T18:00:00Z --json
  postburner enqueue --file jobs.jsonl`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, positional []string) error {
			if len(positional) == 1 {
				spec.Kind = positional[0]
			}
			if spec.Kind == "" && file == "" {
				return errors.New("name a KIND, or a --file of jobs")
			}
			if cmd.Flags().Changed("args") {
				if !json.Valid([]byte(args)) {
					return fmt.Errorf("--args is not JSON: %s", args)
				}
				spec.Args = json.RawMessage(args)
			}
			for text, dst := range map[string]*time.Time{at: &spec.At, expiresAt: &spec.ExpiresAt} {
				if text == "" {
					continue
				}
				t, err := time.Parse(time.RFC3339, text)
				if err != nil {
					return fmt.Errorf("%q is no time in RFC 3339, such as 2026-12-24T18:00:00Z", text)
				}
				*dst = t
			}
			if cmd.Flags().Changed("priority") {
				spec.Priority = &priority
			}
			if cmd.Flags().Changed("max-retries") {
				spec.MaxRetries = &maxRetries
			}
			return p.enqueue(cmd.Context(), &s, spec, file, asJSON)
		},
	}
	s.source.AnyWorker = true
	s.sourceFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&args, "args", "", "arguments, a `JSON` object (default {})")
	f.StringVar(&spec.Queue, "queue", "", "`queue` (default default_queue of the configuration)")
	f.Var(&spec.Delay, "delay", "`time` to wait, in seconds or such as 90s")
	f.StringVar(&at, "at", "", "`time` to wait for, in RFC 3339")
	f.Uint32Var(&priority, "priority", 0, "`priority`; 0 is first (default default_priority of the configuration)")
	f.Var(&spec.TTR, "ttr", "`time` that a worker may be silent (default default_ttr of the configuration)")
	f.IntVar(&maxRetries, "max-retries", 0, "this job's own limit of retries")
	f.BoolVar(&spec.Tracked, "tracked", false, "bury the job at its first failure")
	f.StringVar(&expiresAt, "expires-at", "", "discard the job if no worker has it by this `time`, in RFC 3339")
	f.StringToStringVar(&spec.Metadata, "metadata", nil, "`key=value` that travels with the job")
	f.StringVar(&spec.JobID, "job-id", "", "`identity` of the job (default a new UUID)")
	f.StringVar(&file, "file", "", "`file` of jobs, a JSON object a line; - is standard input")
	f.BoolVar(&asJSON, "json", false, "print receipts as JSON, one a line")
	return cmd
}

// enqueue puts what the command line describes.
func (p *program) enqueue(ctx context.Context, s *settings, spec jobSpec, file string, asJSON bool) error {
	c, err := s.load()
	if err != nil {
		return failed(err)
	}
	enqueuer, err := newClient(c)
	if err != nil {
		return failed(err)
	}
	defer func() { _ = enqueuer.Close() }() // always nil
	if file != "" {
		return p.enqueueFile(ctx, enqueuer, spec, file, asJSON)
	}
	it, err := spec.item()
	if err != nil {
		return err
	}
	receipt, err := enqueuer.Enqueue(ctx, it.Args, it.Options...)
	if err != nil {
		return failed(hinted(c, err))
	}
	return p.printReceipt(receipt, asJSON)
}

// hinted adds what to do where nothing runs yet.
func hinted(c *config.Config, err error) error {
	if c.BeanstalkURL == config.Embedded && errors.Is(err, client.ErrNotSent) {
		return fmt.Errorf("%w\nthe environment %s uses the embedded broker, which `postburner work` or `postburner broker` runs: start one of them first", err, c.Environment)
	}
	return err
}

func (p *program) printReceipt(r client.Receipt, asJSON bool) error {
	if asJSON {
		return p.printJSON(r)
	}
	return p.print("enqueued job %s as %d in %s\n", r.JobID, r.BeanstalkID, r.Tube)
}
