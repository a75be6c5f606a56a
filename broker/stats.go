package broker

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// version is the release of beanstalkd whose protocol this is.
const version = "1.12"

// yaml writes the fields of a stats reply, in their order.
func yaml(fields ...any) string {
	var b strings.Builder
	b.WriteString("---\n")
	for i := 0; i < len(fields); i += 2 {
		fmt.Fprintf(&b, "%v: %v\n", fields[i], fields[i+1])
	}
	return ok(b.String())
}

func wholeSeconds(d time.Duration) int64 { return int64(max(d, 0) / time.Second) }

func (s *session) statsJob(args string) {
	id, valid := s.one(args)
	if !valid {
		return
	}
	s.locked("cmd-stats-job", func(e *engine) string {
		j := e.jobs[id]
		if j == nil {
			return replyNotFound
		}
		var left time.Duration
		if j.state == reserved || j.state == delayed {
			left = time.Until(j.deadline)
		}
		return yaml("id", j.id, "tube", j.tube.name, "state", j.state, "pri", j.pri, "age", wholeSeconds(time.Since(j.created)),
			"delay", wholeSeconds(j.delay), "ttr", wholeSeconds(j.ttr), "time-left", wholeSeconds(left), "file", 0,
			"reserves", j.reserves, "timeouts", j.timeouts, "releases", j.releases, "buries", j.buries, "kicks", j.kicks)
	})
}

func (s *session) statsTube(name string) {
	if !validTube(name) {
		s.reply(replyBadFormat)
		return
	}
	s.locked("cmd-stats-tube", func(e *engine) string {
		t := e.tubes[name]
		if t == nil {
			return replyNotFound
		}
		var left time.Duration
		if t.pause > 0 {
			left = time.Until(t.until)
		}
		return yaml("name", t.name, "current-jobs-urgent", t.urgent, "current-jobs-ready", len(t.ready.jobs),
			"current-jobs-reserved", t.held, "current-jobs-delayed", t.delays, "current-jobs-buried", len(t.buried), "total-jobs", t.total,
			"current-using", t.using, "current-watching", t.watched, "current-waiting", len(t.waiting),
			"cmd-delete", t.deletes, "cmd-pause-tube", t.pauses, "pause", wholeSeconds(t.pause), "pause-time-left", wholeSeconds(left))
	})
}

// counted are the commands of stats, in their order.
var counted = []string{
	"cmd-put", "cmd-peek", "cmd-peek-ready", "cmd-peek-delayed", "cmd-peek-buried", "cmd-reserve", "cmd-reserve-with-timeout",
	"cmd-delete", "cmd-release", "cmd-use", "cmd-watch", "cmd-ignore", "cmd-bury", "cmd-kick", "cmd-touch", "cmd-stats",
	"cmd-stats-job", "cmd-stats-tube", "cmd-list-tubes", "cmd-list-tube-used", "cmd-list-tubes-watched", "cmd-pause-tube", "job-timeouts", "total-jobs",
}

func (s *session) stats(string) {
	s.locked("cmd-stats", func(e *engine) string {
		var urgent, readyJobs, held, delays, buriedJobs int
		for _, t := range e.tubes {
			urgent += t.urgent
			readyJobs += len(t.ready.jobs)
			held += t.held
			delays += t.delays
			buriedJobs += len(t.buried)
		}
		fields := []any{"current-jobs-urgent", urgent, "current-jobs-ready", readyJobs, "current-jobs-reserved", held,
			"current-jobs-delayed", delays, "current-jobs-buried", buriedJobs}
		for _, name := range counted {
			fields = append(fields, name, e.counts[name])
		}
		user, system := cpuTime()
		fields = append(fields, "max-job-size", e.maxJobSize, "current-tubes", len(e.tubes), "current-connections", e.clients,
			"current-producers", e.counts["current-producers"], "current-workers", e.counts["current-workers"], "current-waiting", e.counts["current-waiting"],
			"total-connections", e.counts["total-connections"], "pid", os.Getpid(), "version", `"`+version+`"`,
			"rusage-utime", fmt.Sprintf("%.6f", user.Seconds()), "rusage-stime", fmt.Sprintf("%.6f", system.Seconds()),
			"uptime", wholeSeconds(time.Since(e.started)),
			"binlog-oldest-index", 0, "binlog-current-index", 0, "binlog-records-migrated", 0, "binlog-records-written", 0, "binlog-max-size", 10485760,
			"draining", e.faults.Draining, "id", e.id, "hostname", e.host, "os", runtime.GOOS, "platform", runtime.GOARCH)
		return yaml(fields...)
	})
}

// jobsOf lists a tube.
func (e *engine) jobsOf(name string) []Job {
	e.mu.Lock()
	defer e.mu.Unlock()
	var jobs []Job
	for _, j := range e.jobs {
		if j.tube.name == name {
			jobs = append(jobs, Job{
				ID: j.id, Tube: name, State: j.state.String(), Priority: j.pri, Delay: j.delay, TTR: j.ttr, Body: slices.Clone(j.body),
				Reserves: j.reserves, Timeouts: j.timeouts, Releases: j.releases, Buries: j.buries, Kicks: j.kicks,
			})
		}
	}
	slices.SortFunc(jobs, func(a, b Job) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return jobs
}
