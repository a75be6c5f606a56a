package job

import (
	"encoding/json"
	"time"
)

// Envelope is the decoded body of a job, one JSON object with the keys of the Ruby gem
// and of ActiveJob.
type Envelope struct {
	Kind        string            // job_class, in a legacy job class; chooses the handler
	ID          string            // job_id, the identity of the job over all its attempts
	Queue       string            // queue_name, without the prefix of the tube
	Arguments   json.RawMessage   // the array as it was put; legacy: args; [] if there is none
	Priority    *uint32           // as put
	TTR         *int              // as put, in seconds
	RetryCount  int               // failed attempts that a worker recorded by putting the job anew
	Executions  int               // ActiveJob's counter, kept
	EnqueuedAt  time.Time         // zero if unknown
	ScheduledAt time.Time         // zero if not put ahead
	ExpiresAt   time.Time         // reserved for the first time after this: discarded unrun; zero: never
	Tracked     bool              // a failure buries the job instead of retrying it
	MaxRetries  *int              // this job's own limit; nil: the worker's
	Schedule    *Schedule         // set on jobs that a schedule put
	Metadata    map[string]string // free; traceparent travels here
	Legacy      bool              // {"class": …, "args": […]}: a failure buries it

	// Extra holds what this version has no field for: unknown keys, and known ones
	// that only inform and have another type than they should. Encode writes them back.
	Extra map[string]json.RawMessage
}

// Schedule names the schedule that put a job, and the time of its grid that the job stands for.
type Schedule struct {
	Name  string    `json:"name"`
	RunAt time.Time `json:"run_at"`
}
