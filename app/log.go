package app

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/sirupsen/logrus"
	logrusslog "github.com/sirupsen/logrus/hooks/slog"

	"github.com/postburner/postburner/config"
	"github.com/postburner/postburner/job"
	"github.com/postburner/postburner/worker"
)

// newLogger returns a logger that writes through logrus, each entry as one line in one
// write: parent and children share an output. A line names its process.
func newLogger(out io.Writer, c config.Log) *slog.Logger {
	sink := logrus.New()
	sink.SetOutput(out)
	sink.AddHook(readableDurations{})
	if level, err := logrus.ParseLevel(c.Level); err == nil { // the configuration has checked it
		sink.SetLevel(level)
	}
	if c.Format == "json" {
		sink.SetFormatter(&logrus.JSONFormatter{TimestampFormat: time.RFC3339Nano, DisableHTMLEscape: true})
	} else {
		sink.SetFormatter(&logrus.TextFormatter{FullTimestamp: true, TimestampFormat: "2006-01-02T15:04:05.000Z07:00", DisableColors: true})
	}
	return slog.New(logrusslog.NewHandler(sink, nil)).With("process", os.Getpid())
}

// readableDurations writes durations as text, which JSON would have as nanoseconds.
type readableDurations struct{}

// Levels returns all levels.
func (readableDurations) Levels() []logrus.Level { return logrus.AllLevels }

// Fire changes the entry, which is logrus's own copy.
func (readableDurations) Fire(e *logrus.Entry) error {
	for key, value := range e.Data {
		if d, ok := value.(time.Duration); ok {
			e.Data[key] = d.String()
		}
	}
	return nil
}

// eventLog makes log lines of what happens to jobs.
func eventLog(logger *slog.Logger) worker.Observer {
	debug := logger.Enabled(context.Background(), slog.LevelDebug)
	return worker.ObserverFunc(func(e worker.Event) {
		level := slog.LevelInfo
		switch e.Type {
		case worker.EventPerformStart, worker.EventPerform:
			if !debug { // the path of every job
				return
			}
			level = slog.LevelDebug
		case worker.EventRetry, worker.EventDiscard, worker.EventLost:
			level = slog.LevelWarn
		case worker.EventBury:
			level = slog.LevelError
		}
		logger.Log(context.Background(), level, string(e.Type), eventFields(e)...)
	})
}

func eventFields(e worker.Event) []any {
	fields := []any{"kind", e.Kind, "job_id", e.JobID, "beanstalkd_id", e.BeanstalkID}
	add := func(known bool, name string, value any) {
		if known {
			fields = append(fields, name, value)
		}
	}
	add(e.Tube != "", "tube", e.Tube)
	add(e.Attempt > 0, "attempt", e.Attempt)
	add(e.Duration > 0, "duration", e.Duration)
	add(e.Wait > 0, "wait", e.Wait.Round(time.Millisecond))
	add(e.Reason != "", "reason", e.Reason)
	if e.Err != nil {
		add(true, "error", e.Err.Error())
		if crash, ok := errors.AsType[*job.PanicError](e.Err); ok {
			add(true, "stack", string(crash.Stack))
		}
	}
	return fields
}
