package job

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"
)

// Envelope is the decoded body of a job.
type Envelope struct {
	Kind        string          // job_class (legacy: class); chooses the handler
	ID          string          // job_id, stable over retries
	Queue       string          // queue_name, without prefix
	Arguments   json.RawMessage // the JSON array `arguments` (legacy: args) as it was put, "[]" if absent
	Priority    *uint32
	TTR         *int // seconds
	RetryCount  int
	Executions  int
	EnqueuedAt  time.Time
	ScheduledAt time.Time
	ExpiresAt   time.Time
	Tracked     bool
	MaxRetries  *int
	Schedule    *Schedule
	Metadata    map[string]string
	Legacy      bool                       // {"class": …, "args": […]}
	Extra       map[string]json.RawMessage // keys this version does not know; Encode writes them back
}

// Schedule names the schedule that put a job and the time it stands for.
type Schedule struct {
	Name  string    `json:"name"`
	RunAt time.Time `json:"run_at"`
}

// Decode reads a body. Its error is a *MalformedError.
func Decode(body []byte) (*Envelope, error) { panic("unwritten") }

// Encode writes the body in the wire format of section 2.
func (e *Envelope) Encode() ([]byte, error) { panic("unwritten") }

// Bind decodes the arguments into dst (a pointer).
func (e *Envelope) Bind(dst any) error { panic("unwritten") }

// MalformedError says why a body is no job.
type MalformedError struct{ Reason string }

func (e *MalformedError) Error() string { panic("unwritten") }

// Args is a typed argument struct that names its kind.
type Args interface{ Kind() string }

// Handler runs jobs of one kind.
type Handler interface {
	HandleJob(ctx context.Context, j *Job) error
}

// HandlerFunc makes a function a Handler.
type HandlerFunc func(ctx context.Context, j *Job) error

func (f HandlerFunc) HandleJob(ctx context.Context, j *Job) error { return f(ctx, j) }

// Middleware wraps a Handler, as in net/http.
type Middleware func(Handler) Handler

// Registry maps kinds to handlers.
type Registry struct{}

func NewRegistry() *Registry                                        { panic("unwritten") }
func (r *Registry) Use(mw ...Middleware)                            { panic("unwritten") }
func (r *Registry) Handle(kind string, h Handler, mw ...Middleware) { panic("unwritten") }
func (r *Registry) Lookup(kind string) (Handler, bool)              { panic("unwritten") }
func (r *Registry) Kinds() []string                                 { panic("unwritten") }
func Handle[A Args](r *Registry, fn func(context.Context, A) error, mw ...Middleware) {
	panic("unwritten")
}

// Job is one execution of a job: its envelope and what the worker knows of it.
type Job struct {
	*Envelope
	BeanstalkID uint64
	Tube        string // "" where not known
	Body        []byte // as reserved; not to be changed

	// AttemptFunc answers Attempt; the worker sets it. Logger is nil-safe through Log.
	AttemptFunc func(ctx context.Context) (int, error)
	Logger      *slog.Logger
}

// Attempt is 1 for the first execution; it asks the server once, then remembers.
func (j *Job) Attempt(ctx context.Context) (int, error) { panic("unwritten") }

// Log returns the logger with the job's fields.
func (j *Job) Log() *slog.Logger { panic("unwritten") }

func NewContext(ctx context.Context, j *Job) context.Context { panic("unwritten") }

// FromContext returns the job that ctx belongs to, nil outside a handler.
func FromContext(ctx context.Context) *Job { panic("unwritten") }

// Causes of a handler's cancelled context (context.Cause).
var (
	ErrLeaseLost = errors.New("…")
	ErrShutdown  = errors.New("…")
)

// RetryIn, Discard and Bury wrap an error with what becomes of the job. err may be nil.
func RetryIn(d time.Duration, err error) error { panic("unwritten") }
func Discard(err error) error                  { panic("unwritten") }
func Bury(err error) error                     { panic("unwritten") }

// Action is what a handler's result asks for.
type Action int

const (
	ActionDone Action = iota
	ActionRetry
	ActionDiscard
	ActionBury
)

// Verdict reads a handler's error. Delay is 0 unless the handler chose one.
type Verdict struct {
	Action Action
	Delay  time.Duration
	Err    error
}

func VerdictOf(err error) Verdict { panic("unwritten") }

// PanicError is a handler's panic, its value and stack kept.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { panic("unwritten") }
