// Package beanstalk is one connection to beanstalkd that keeps deadlines, honours
// contexts and redials itself, over beanstalkd/go-beanstalk.
package beanstalk

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"
)

// Options configures a Conn. Only URL (or Dial) is required.
type Options struct {
	URL          string        // beanstalk://host:port (port default 11300), beanstalks://host:port (TLS), unix:///path
	TLS          *tls.Config   // for beanstalks://; nil: system roots, ServerName from the URL
	Tubes        []string      // what Reserve watches; default: the tube "default"
	DialTimeout  time.Duration // default 10 s
	ReplyTimeout time.Duration // how long any reply may take (reserve: its timeout + this); default 10 s

	// Dial replaces the network: tests hand in a net.Pipe or a faulty connection.
	Dial func(ctx context.Context) (net.Conn, error)

	// Redial is called before each dial that follows a failure (of a dial or of a
	// live connection) with the number of failures in a row, 1 at first, and the
	// last error; it waits as long as it likes and returns non-nil to give up
	// (that error is what the command returns). Default: 100 ms doubling to 30 s,
	// jittered. A dial that follows a deliberate Disconnect or Interrupt is no failure.
	Redial func(ctx context.Context, failures int, err error) error
}

// Conn is one connection. It dials at the first command and redials at the next
// command after it broke. Commands are serialised: safe for concurrent use, but one
// waiting Reserve blocks the others.
type Conn struct{}

// Job is a reserved job. It belongs to the connection that reserved it: once that is
// gone, commands on it answer ErrJobLost without asking the server, since it is
// another's by then.
type Job struct {
	ID   uint64
	Body []byte // the caller's to keep
	// + unexported epoch of the connection
}

// New checks opts and returns a Conn that has not dialled yet.
func New(opts Options) (*Conn, error) { panic("unwritten") }

// Reserve waits up to timeout (whole seconds, rounded up; 0 polls) for a job.
// ErrTimeout, ErrDeadlineSoon, ErrInterrupted (Interrupt or ctx ended: the connection
// was closed under the reserve; a job handed over in that instant goes back by itself).
func (c *Conn) Reserve(ctx context.Context, timeout time.Duration) (*Job, error) { panic("unwritten") }

// DeleteAndReserve sends delete and reserve in one write. deleted is the outcome of the
// delete (nil, ErrNotFound, ErrUnknownOutcome …), err that of the reserve. The two are independent:
// the DELETED reply is always awaited even if Interrupt is called meanwhile.
func (c *Conn) DeleteAndReserve(ctx context.Context, done *Job, timeout time.Duration) (next *Job, deleted, err error) {
	panic("unwritten")
}

// Interrupt ends a Reserve that waits now by closing the connection under it, and makes
// every later Reserve return ErrInterrupted until Resume. It never disturbs another command, and a
// job that a Reserve already returned stays reserved: its delete, release, … work as before.
func (c *Conn) Interrupt() { panic("unwritten") }

// Resume lets Reserve work again.
func (c *Conn) Resume() { panic("unwritten") }

// Disconnect drops the connection on purpose: jobs it holds are ready again at once.
func (c *Conn) Disconnect() { panic("unwritten") }

// Close drops the connection for good; later commands answer ErrClosed.
func (c *Conn) Close() error { panic("unwritten") }

// Connected reports whether the connection is up as far as this side knows. Lock-free.
func (c *Conn) Connected() bool { panic("unwritten") }

// Commands on reserved jobs. Release and Bury keep what they do atomic on the server. delay is rounded up to whole seconds.
func (c *Conn) Delete(ctx context.Context, j *Job) error { panic("unwritten") }
func (c *Conn) Release(ctx context.Context, j *Job, pri uint32, delay time.Duration) error {
	panic("unwritten")
}
func (c *Conn) Bury(ctx context.Context, j *Job, pri uint32) error { panic("unwritten") }
func (c *Conn) Touch(ctx context.Context, j *Job) error            { panic("unwritten") }

// Commands by id, for jobs that nobody has reserved (or ReserveJob: takes it).
func (c *Conn) DeleteID(ctx context.Context, id uint64) error           { panic("unwritten") }
func (c *Conn) KickJob(ctx context.Context, id uint64) error            { panic("unwritten") }
func (c *Conn) Peek(ctx context.Context, id uint64) ([]byte, error)     { panic("unwritten") }
func (c *Conn) ReserveJob(ctx context.Context, id uint64) (*Job, error) { panic("unwritten") }

// Tube commands.
func (c *Conn) PeekReady(ctx context.Context, tube string) (id uint64, body []byte, err error) {
	panic("unwritten")
}
func (c *Conn) PeekDelayed(ctx context.Context, tube string) (id uint64, body []byte, err error) {
	panic("unwritten")
}
func (c *Conn) PeekBuried(ctx context.Context, tube string) (id uint64, body []byte, err error) {
	panic("unwritten")
}
func (c *Conn) Kick(ctx context.Context, tube string, bound int) (int, error)     { panic("unwritten") }
func (c *Conn) PauseTube(ctx context.Context, tube string, d time.Duration) error { panic("unwritten") }
func (c *Conn) ListTubes(ctx context.Context) ([]string, error)                   { panic("unwritten") }

// Put is what a put needs. TTR under one second is refused (1 s is the least the server keeps).
type Put struct {
	Tube     string
	Body     []byte
	Priority uint32
	Delay    time.Duration
	TTR      time.Duration
}

// Put puts one job. ErrUnknownOutcome: sent, but the reply was lost. ErrBuried comes with its id.
func (c *Conn) Put(ctx context.Context, p Put) (id uint64, err error) { panic("unwritten") }

// PutResult is the outcome of one put of PutMany.
type PutResult struct {
	ID  uint64
	Err error // nil, or as of Put; puts never sent after a failure carry ErrNotSent
}

// PutMany pipelines puts and returns one result each, in order.
func (c *Conn) PutMany(ctx context.Context, puts []Put) []PutResult { panic("unwritten") }

// JobStats, TubeStats and ServerStats carry the counters as numbers (1.13's quotes removed).
type JobStats struct {
	ID                                          uint64
	Tube, State                                 string
	Priority                                    uint32
	Age, Delay, TTR, TimeLeft                   time.Duration
	Reserves, Timeouts, Releases, Buries, Kicks int
}
type TubeStats struct {
	Name                                     string
	Urgent, Ready, Reserved, Delayed, Buried int
	TotalJobs                                uint64
	Using, Watching, Waiting                 int
	// + pause fields, cmd counters
}
type ServerStats struct {
	ID, Version, Hostname string // ID is random per server process
	MaxJobSize            int
	Draining              bool
	Raw                   map[string]string
	// + job counts and connection counts
}

func (c *Conn) StatsJob(ctx context.Context, id uint64) (JobStats, error)     { panic("unwritten") }
func (c *Conn) StatsTube(ctx context.Context, tube string) (TubeStats, error) { panic("unwritten") }
func (c *Conn) Stats(ctx context.Context) (ServerStats, error)                { panic("unwritten") }

// CheckTube reports why name is no tube name of beanstalkd, nil if it is one.
func CheckTube(name string) error { panic("unwritten") }

// What callers branch on, with errors.Is; every error of a command is an *Error around one of these or an I/O error.
var (
	ErrNotFound       = errors.New("not found")
	ErrTimeout        = errors.New("no job within the timeout")
	ErrDeadlineSoon   = errors.New("…")
	ErrBuried         = errors.New("…")
	ErrDraining       = errors.New("…")
	ErrJobTooBig      = errors.New("…")
	ErrOutOfMemory    = errors.New("…")
	ErrInternal       = errors.New("…")
	ErrInterrupted    = errors.New("…")
	ErrClosed         = errors.New("…")
	ErrJobLost        = errors.New("…") // the connection that held the job is gone
	ErrUnknownOutcome = errors.New("…") // sent, but the reply never came: it may have happened
	ErrNotSent        = errors.New("…") // certainly did not happen
)

// Error is a command that did not succeed.
type Error struct {
	Op, Addr string // what was being done, and to which server (secrets masked)
	Err      error
}

func (e *Error) Error() string { panic("unwritten") }
func (e *Error) Unwrap() error { return e.Err }
