// Package job is what a job is and how it is handled: the wire format that it shares
// with the Ruby gem Postburner and with ActiveJob, the registry of typed handlers,
// middleware, and the errors with which a handler says what becomes of its job.
//
// A handler is a function of a context and of arguments of its own type, which names
// the kind of the job:
//
//	type SendEmail struct {
//		UserID int `json:"user_id"`
//	}
//
//	func (SendEmail) Kind() string { return "SendEmail" }
//
//	job.Handle(registry, func(ctx context.Context, a SendEmail) error { … })
//
// It returns nil when the job is done, and any other error to have it tried again
// later; [RetryIn], [Discard] and [Bury] ask for something else. Jobs are delivered
// at least once: a handler that must not repeat itself remembers [Envelope.ID].
package job
