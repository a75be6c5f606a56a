// Package job is what a job is and how it is handled: the wire format it shares
// with the Ruby gem Postburner and Rails' ActiveJob, the registry of typed
// handlers, middleware, and the errors with which a handler says what becomes of
// its job.
package job
