package worker

import (
	"time"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/job"
	"github.com/postburner/postburner/retry"
)

// minDelay is the least delay of a retry: beanstalkd writes a release to its binlog only with a delay of a second or more.
const minDelay = time.Second

// decision is what to do with a job that was not simply done.
type decision struct {
	action job.Action    // Retry, Discard or Bury
	delay  time.Duration // of Retry
	reason string        // of the others
}

// decide says what becomes of a job whose attempt-th attempt failed.
func decide(v job.Verdict, e *job.Envelope, attempt int, p retry.Policy) decision {
	limit := p.MaxRetries
	if e.MaxRetries != nil {
		limit = *e.MaxRetries
	}
	switch {
	case v.Action == job.ActionDiscard:
		return decision{action: job.ActionDiscard, reason: "the handler asked for it"}
	case v.Action == job.ActionBury:
		return decision{action: job.ActionBury, reason: "the handler asked for it"}
	case e.Tracked:
		return decision{action: job.ActionBury, reason: "a tracked job failed"}
	case e.Legacy:
		return decision{action: job.ActionBury, reason: "a legacy job failed"}
	case attempt > limit && p.Exhausted == retry.Discard:
		return decision{action: job.ActionDiscard, reason: "its attempts are used up"}
	case attempt > limit:
		return decision{action: job.ActionBury, reason: "its attempts are used up"}
	case v.Chosen:
		return decision{action: job.ActionRetry, delay: max(v.Delay, minDelay)}
	}
	return decision{action: job.ActionRetry, delay: max(p.Delay(attempt), minDelay)}
}

// attemptOf counts the attempt that runs now: those before it were recorded in the body,
// released by a worker, or ran into their TTR. Closed connections do not count, so a deploy
// burns no attempt; nor do kicks, so a buried job that someone kicks gets one attempt more.
func attemptOf(e *job.Envelope, s beanstalk.JobStats) int {
	return e.RetryCount + s.Releases + s.Timeouts + 1
}
