package beanstalk

import (
	"errors"
	"fmt"

	gobeanstalk "github.com/beanstalkd/go-beanstalk"
)

// What callers branch on, with errors.Is. Every error of a command is an *Error around
// one of these or around what the network said.
var (
	// ErrNotFound: there is no such job or tube, or the job is another connection's.
	ErrNotFound = errors.New("not found")
	// ErrTimeout: no job came within the timeout of a reserve.
	ErrTimeout = errors.New("no job within the timeout")
	// ErrDeadlineSoon: a job that this connection holds is in the last second of its TTR.
	ErrDeadlineSoon = errors.New("a held job is about to reach its TTR")
	// ErrBuried: the server had no memory to queue the job and buried it.
	ErrBuried = errors.New("the server was out of memory and buried the job")
	// ErrDraining: the server takes no new jobs (drain mode).
	ErrDraining = errors.New("the server is draining and takes no new jobs")
	// ErrJobTooBig: the body is larger than the server's max-job-size.
	ErrJobTooBig = errors.New("the body is larger than the server's max-job-size")
	// ErrOutOfMemory: the server has no memory, or no disk for its binlog.
	ErrOutOfMemory = errors.New("the server is out of memory or of disk for its binlog")
	// ErrInternal: the server reports an internal error; for bury that is a full disk.
	ErrInternal = errors.New("internal error of the server")
	// ErrInterrupted: Interrupt ended or forbade the reserve.
	ErrInterrupted = errors.New("interrupted")
	// ErrClosed: Close was called.
	ErrClosed = errors.New("connection closed for good")
	// ErrJobLost: the connection that held the job is gone, and with it the lease. Nothing was sent.
	ErrJobLost = errors.New("the connection that held the job is gone")
	// ErrUnknownOutcome: the command was sent and its reply never came. It may have been carried out.
	ErrUnknownOutcome = errors.New("the reply was lost, the command may have been carried out")
	// ErrNotSent: the command was certainly not carried out.
	ErrNotSent = errors.New("not sent")
)

// errProtocol is a reply that fits no command: the stream is out of step.
var errProtocol = errors.New("unexpected reply")

// Error is a command that did not succeed.
type Error struct {
	Op   string // what was being done, such as "release job 7"
	Addr string // the server
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("%s at %s: %v", e.Op, e.Addr, e.Err) }

// Unwrap returns what happened.
func (e *Error) Unwrap() error { return e.Err }

// replies maps the error replies that leave the stream in step.
var replies = map[string]error{
	"NOT_FOUND":      ErrNotFound,
	"TIMED_OUT":      ErrTimeout,
	"DEADLINE_SOON":  ErrDeadlineSoon,
	"BURIED":         ErrBuried,
	"DRAINING":       ErrDraining,
	"JOB_TOO_BIG":    ErrJobTooBig,
	"OUT_OF_MEMORY":  ErrOutOfMemory,
	"INTERNAL_ERROR": ErrInternal,
}

// fromLibrary translates what go-beanstalk, or the codec here, returned. inStep says
// whether the connection can go on.
func fromLibrary(err error) (inStep bool, translated error) {
	for _, pair := range [...]struct{ theirs, ours error }{
		{gobeanstalk.ErrNotFound, ErrNotFound},
		{gobeanstalk.ErrTimeout, ErrTimeout},
		{gobeanstalk.ErrDeadline, ErrDeadlineSoon},
		{gobeanstalk.ErrBuried, ErrBuried},
		{gobeanstalk.ErrDraining, ErrDraining},
		{gobeanstalk.ErrJobTooBig, ErrJobTooBig},
		{gobeanstalk.ErrOOM, ErrOutOfMemory},
		{gobeanstalk.ErrInternal, ErrInternal},
	} {
		if errors.Is(err, pair.theirs) || errors.Is(err, pair.ours) {
			return true, pair.ours
		}
	}
	if failure, ok := errors.AsType[gobeanstalk.ConnError](err); ok {
		err = failure.Err
	}
	return false, err
}
