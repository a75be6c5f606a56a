package swarm

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"
)

// lines says how each event is logged. Bad news are errors: something was lost or did not work.
var lines = map[EventType]struct {
	level   slog.Level
	message string
}{
	EventSpawned:        {slog.LevelInfo, "child started"},
	EventSpawnFailed:    {slog.LevelError, "a child could not be started; it is tried again"},
	EventHello:          {slog.LevelDebug, "child is up"},
	EventReady:          {slog.LevelInfo, "child is ready"},
	EventRecycling:      {slog.LevelInfo, "child has reached its job limit and finishes what it runs"},
	EventReplace:        {slog.LevelWarn, "child is to be replaced"},
	EventReplaceFailed:  {slog.LevelError, "the replacement of a child failed; the old one is kept as long as it lives"},
	EventKilled:         {slog.LevelError, "killing a child"},
	EventExited:         {slog.LevelError, "child died"},
	EventQuiet:          {slog.LevelInfo, "quiet: children take no more jobs"},
	EventRestart:        {slog.LevelInfo, "rolling restart begins"},
	EventRestartDone:    {slog.LevelInfo, "rolling restart is done"},
	EventRestartFailed:  {slog.LevelError, "rolling restart failed; children that are not replaced yet stay. See why the replacement did not come up, then restart again"},
	EventRestartDropped: {slog.LevelWarn, "rolling restart is dropped: the swarm stops"},
	EventStopping:       {slog.LevelInfo, "stopping the children"},
}

// namedJobs is how many running jobs a log line names.
const namedJobs = 20

// tell logs an event and passes it on.
func (s *Swarm) tell(e Event) {
	p := s.processes[e.id] // nil if it never started, or the event is the whole swarm's
	if p != nil {
		e.PID = p.pid()
	}
	line := lines[e.Type]
	var attrs []slog.Attr
	add := func(name string, value any) { attrs = append(attrs, slog.Any(name, value)) }
	if e.Slot >= 0 {
		add("slot", e.Slot)
	}
	if e.PID != 0 {
		add("pid", e.PID)
	}
	if e.Type == EventReady && p != nil {
		add("after", time.Since(p.began).Round(time.Millisecond))
	}
	if e.Type == EventExited {
		line.level, line.message, attrs = s.describeExit(e, attrs)
	}
	if e.Reason != "" {
		add("reason", e.Reason)
	}
	if e.Err != nil {
		add("error", e.Err)
	}
	if e.Wait > 0 {
		add("next_after", e.Wait.Round(time.Millisecond))
	}
	s.opts.Logger.LogAttrs(context.Background(), line.level, line.message, attrs...)
	if s.opts.Observer == nil {
		return
	}
	s.call("Options.Observer", func() { s.opts.Observer(e) })
}

// call calls a callback. A panic in it is logged.
func (s *Swarm) call(name string, callback func()) {
	defer func() {
		if value := recover(); value != nil {
			s.opts.Logger.Error("a callback panicked; the swarm goes on", "callback", name, "panic", value, "stack", string(debug.Stack()))
		}
	}()
	callback()
}

// describeExit chooses the words for the end of a child.
func (s *Swarm) describeExit(e Event, attrs []slog.Attr) (slog.Level, string, []slog.Attr) {
	attrs = append(attrs, slog.Duration("age", e.Exit.Age.Round(time.Millisecond)), slog.Uint64("jobs", e.Exit.Heartbeat.Started))
	if e.Exit.Signal != "" {
		attrs = append(attrs, slog.String("signal", e.Exit.Signal))
	} else {
		attrs = append(attrs, slog.Int("code", e.Exit.Code))
	}
	if running := e.Exit.Running; len(running) > 0 {
		names := make([]string, 0, len(running))
		for i, r := range running {
			if i == namedJobs {
				names = append(names, fmt.Sprintf("and %d more", len(running)-i))
				break
			}
			names = append(names, r.String())
		}
		attrs = append(attrs, slog.String("running", strings.Join(names, ", ")))
	}
	switch {
	case e.expected && e.Exit.Code == ExitRecycled:
		return slog.LevelInfo, "child recycled", attrs
	case e.expected && len(e.Exit.Running) > 0:
		return slog.LevelWarn, "child stopped with jobs still running; they go back to the server", attrs
	case e.expected:
		return slog.LevelInfo, "child stopped", attrs
	case e.Exit.Code == ExitRecycled:
		return slog.LevelError, "child recycled without having done a job", attrs
	case e.Exit.Signal == "SIGKILL":
		attrs = append(attrs, slog.String("hint", s.oom.hint()))
	}
	return slog.LevelError, "child died", attrs
}
