package job

import (
	"context"
	"log/slog"
	"sync"
)

// Job is one execution of a job: its envelope and what the worker knows of it. A
// handler finds it with FromContext. It must not be copied.
type Job struct {
	*Envelope

	BeanstalkID uint64 // beanstalkd's own id; it changes when a job is put anew
	Tube        string // "" where not known
	Body        []byte // as reserved, not to be changed

	// AttemptFunc answers Attempt, once. Nil: the failed attempts recorded in the envelope, plus one.
	AttemptFunc func(ctx context.Context) (int, error)
	// Logger is what Log adds the job's fields to. Nil: slog.Default().
	Logger *slog.Logger

	mu      sync.Mutex
	attempt int
	logger  *slog.Logger
}

// Attempt returns which attempt this is, 1 for the first. The first call asks the
// server; later ones, from whatever goroutine, remember. An error is not remembered.
func (j *Job) Attempt(ctx context.Context) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.attempt > 0 {
		return j.attempt, nil
	}
	if j.AttemptFunc == nil {
		j.attempt = j.RetryCount + 1
		return j.attempt, nil
	}
	attempt, err := j.AttemptFunc(ctx)
	if err != nil {
		return 0, err
	}
	j.attempt = attempt
	return attempt, nil
}

// Log returns a logger with kind, job_id and beanstalkd id of the job.
func (j *Job) Log() *slog.Logger {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.logger == nil {
		base := j.Logger
		if base == nil {
			base = slog.Default()
		}
		j.logger = base.With("kind", j.Kind, "job_id", j.ID, "beanstalkd_id", j.BeanstalkID)
	}
	return j.logger
}

type contextKey struct{}

// NewContext returns a context that carries the job. Workers call it; so do tests of handlers.
func NewContext(ctx context.Context, j *Job) context.Context {
	return context.WithValue(ctx, contextKey{}, j)
}

// FromContext returns the job that a handler's context carries, nil elsewhere.
func FromContext(ctx context.Context) *Job {
	j, _ := ctx.Value(contextKey{}).(*Job)
	return j
}
