package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"time"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/job"
)

// Options configures a Client. The zero value of each field stands for its default, so the
// zero Options is that of a client of a server on this machine.
type Options struct {
	// URL is of the server: beanstalk://HOST[:PORT], beanstalks://HOST[:PORT] for TLS, or
	// unix:///PATH. Default DefaultURL. With Dial it is only a name for messages, and is not checked.
	URL string
	// TLS is used with beanstalks://, and otherwise not at all. Default: the system's roots,
	// and TLS 1.2 at least. If it has no ServerName, the host of URL is taken.
	TLS *tls.Config
	// Environment is the middle of the tubes' names, postburner.ENVIRONMENT.QUEUE, the same as
	// that of the workers. Default: the variable POSTBURNER_ENV, else development.
	Environment string
	// DefaultQueue is the queue of jobs without the option Queue. Default "default".
	DefaultQueue string
	// DefaultPriority is that of jobs without the option Priority; the lower, the sooner. Nil
	// is the default, 65536; a pointer to 0 is priority 0, before all others.
	DefaultPriority *uint32
	// DefaultTTR is that of jobs without the option TTR: a second at least, rounded up to whole
	// seconds. Default 300 s.
	DefaultTTR time.Duration
	// Connections is how many connections there are at most, and so how many calls are under
	// way at a time; further calls wait for one of them. Default 4.
	Connections int
	// Timeout is how long a dial may take, its TLS handshake included, and how long each reply.
	// After it the connection counts as lost. Default 10 s; there is no way to wait for ever.
	Timeout time.Duration
	// Dial replaces the network, TLS included. Its context ends after Timeout. Default: URL is dialled.
	Dial func(ctx context.Context) (net.Conn, error)
}

// Defaults of Options, those of postburner.yml.
const (
	DefaultURL      = job.DefaultURL
	DefaultPriority = job.DefaultPriority
	DefaultTTR      = job.DefaultTTR
)

func (o *Options) complete() error {
	o.URL = cmp.Or(o.URL, DefaultURL)
	o.Environment = cmp.Or(o.Environment, os.Getenv("POSTBURNER_ENV"), "development")
	o.DefaultQueue = cmp.Or(o.DefaultQueue, job.DefaultQueue)
	if o.DefaultPriority == nil {
		o.DefaultPriority = new(uint32)
		*o.DefaultPriority = DefaultPriority
	}
	o.DefaultTTR = cmp.Or(o.DefaultTTR, DefaultTTR)
	o.Connections = cmp.Or(o.Connections, 4)
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	var problems []error
	if o.Connections < 0 {
		problems = append(problems, fmt.Errorf("client: Options.Connections is %d, want 1 or more", o.Connections))
	}
	if o.Timeout < 0 {
		problems = append(problems, fmt.Errorf("client: Options.Timeout is %v, want more than 0", o.Timeout))
	}
	if err := checkTTR(o.DefaultTTR); err != nil {
		problems = append(problems, fmt.Errorf("client: Options.DefaultTTR: %w", err))
	}
	if _, err := tubeOf(o.Environment, o.DefaultQueue); err != nil {
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// InvalidQueueError is a queue whose tube cannot exist.
type InvalidQueueError struct {
	Queue  string
	Reason error // the rule it breaks
}

func (e *InvalidQueueError) Error() string {
	return fmt.Sprintf("client: queue %q: %v", e.Queue, e.Reason)
}

// Unwrap returns the reason.
func (e *InvalidQueueError) Unwrap() error { return e.Reason }

func tubeOf(environment, queue string) (string, error) {
	tube := job.Tube(environment, queue)
	if queue == "" {
		return "", &InvalidQueueError{queue, errors.New("a queue needs a name")}
	}
	if err := beanstalk.CheckTube(tube); err != nil {
		return "", &InvalidQueueError{queue, err}
	}
	return tube, nil
}

// put is what the options of one job say.
type put struct {
	queue      string
	priority   *uint32
	ttr        time.Duration
	delay      time.Duration
	at         time.Time
	maxRetries *int
	expiresAt  time.Time
	tracked    bool
	metadata   map[string]string
	jobID      string
}

// Option says more about one job.
type Option func(*put)

// Queue puts the job into a queue other than the default one.
func Queue(name string) Option { return func(p *put) { p.queue = name } }

// Priority orders the jobs of all tubes that a worker watches: lower is first, 0 before all.
func Priority(priority uint32) Option { return func(p *put) { p.priority = &priority } }

// TTR is how long a worker may be silent before its job goes to another one, a second at
// least. It is no limit on a handler's runtime: a living worker renews its leases.
func TTR(d time.Duration) Option { return func(p *put) { p.ttr = d } }

// Delay has the job wait before it can be run, in whole seconds, rounded up.
func Delay(d time.Duration) Option { return func(p *put) { p.delay, p.at = d, time.Time{} } }

// At has the job wait until t; a t in the past is now. Of Delay and At the last one counts.
func At(t time.Time) Option { return func(p *put) { p.at, p.delay = t, 0 } }

// MaxRetries is this job's own limit of retries after its first attempt, in place of the worker's.
func MaxRetries(n int) Option { return func(p *put) { p.maxRetries = &n } }

// ExpiresAt has the job discarded unrun if no worker has reserved it by t.
func ExpiresAt(t time.Time) Option { return func(p *put) { p.expiresAt = t } }

// Tracked has the job buried at its first failure, for someone to look at, instead of retried.
func Tracked() Option { return func(p *put) { p.tracked = true } }

// Metadata adds a key to what handlers find in Envelope.Metadata, such as traceparent.
func Metadata(key, value string) Option {
	return func(p *put) {
		if p.metadata == nil {
			p.metadata = make(map[string]string)
		}
		p.metadata[key] = value
	}
}

// JobID sets the identity of the job in place of a fresh UUID version 7, for callers
// that have one by which they recognise duplicates.
func JobID(id string) Option { return func(p *put) { p.jobID = id } }

func (p *put) check() error {
	var problems []error
	if p.delay < 0 {
		problems = append(problems, fmt.Errorf("client: a delay of %v, want 0 or more", p.delay))
	}
	if p.delay.Seconds() > math.MaxUint32 || time.Until(p.at).Seconds() > math.MaxUint32 {
		problems = append(problems, errors.New("client: a delay of more than 136 years is more than beanstalkd can wait"))
	}
	if err := checkTTR(p.ttr); err != nil {
		problems = append(problems, fmt.Errorf("client: %w", err))
	}
	if p.maxRetries != nil && (*p.maxRetries < 0 || *p.maxRetries > math.MaxInt32) {
		problems = append(problems, fmt.Errorf("client: MaxRetries is %d, want 0 to %d", *p.maxRetries, math.MaxInt32))
	}
	return errors.Join(problems...)
}

func checkTTR(d time.Duration) error {
	if d < time.Second || d.Seconds() > math.MaxUint32 {
		return fmt.Errorf("a TTR of %v: want a second or more, and at most what 32 bits hold", d)
	}
	return nil
}
