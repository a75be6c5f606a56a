package job

import (
	"encoding/json"
	"time"
)

// Envelope is the decoded body of a job, one JSON object with the keys of the Ruby gem
// and of ActiveJob.
type Envelope struct {
	Kind        string            // job_class, in a legacy job class; chooses the handler; never "" once decoded
	ID          string            // job_id, the identity of the job over all its attempts; "" if it has none
	Queue       string            // queue_name, without the prefix of the tube; "" if unknown
	Arguments   json.RawMessage   // the array as it was put; legacy: args; [] if there is none
	Priority    *uint32           // as put, 0 is first; nil if unknown
	TTR         *int              // as put, in seconds; nil if unknown
	RetryCount  int               // failed attempts that a worker recorded by putting the job anew, 0 at first
	Executions  int               // ActiveJob's counter, kept as it is; 0 at first
	EnqueuedAt  time.Time         // zero if unknown
	ScheduledAt time.Time         // zero if not put ahead
	ExpiresAt   time.Time         // reserved for the first time after this: discarded unrun; zero: never
	Tracked     bool              // a failure buries the job instead of retrying it
	MaxRetries  *int              // this job's own limit of retries after its first attempt; nil: the worker's
	Schedule    *Schedule         // read for programs; nothing here sets it yet; nil if absent
	Metadata    map[string]string // free; traceparent travels here; nil if there is none
	Legacy      bool              // {"class": …, "args": […]}: a failure buries it

	// Extra holds what this version has no field for: unknown keys, and known ones
	// that only inform and have another type than they should. Encode writes them back.
	Extra map[string]json.RawMessage
}

// Schedule names the schedule that put a job, and the time of its grid that the job stands for.
type Schedule struct {
	Name  string    `json:"name"`   // "" if absent
	RunAt time.Time `json:"run_at"` // zero if absent
}
