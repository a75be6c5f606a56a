package app

import (
	"io"
	"log/slog"

	"github.com/sirupsen/logrus"
	logrusslog "github.com/sirupsen/logrus/hooks/slog"

	"github.com/postburner/postburner/config"
	"github.com/postburner/postburner/job"
	"github.com/postburner/postburner/worker"

	"context"
	"errors"
	"os"
	"time"
)

// newLogger returns a logger that writes whole lines through logrus. Parent and
// children share one output; a line names the process.
func newLogger(out io.Writer, c config.Log) *slog.Logger {
	sink := logrus.New()
	sink.SetOutput(out)
	if level, err := logrus.ParseLevel(c.Level); err == nil { // the configuration has checked it
		sink.SetLevel(level)
	}
	if c.Format == "json" {
		sink.SetFormatter(&logrus.JSONFormatter{TimestampFormat: time.RFC3339Nano})
	} else {
		sink.SetFormatter(&logrus.TextFormatter{FullTimestamp: true, TimestampFormat: "2006-01-02T15:04:05.000Z07:00", DisableColors: true})
	}
	return slog.New(logrusslog.NewHandler(sink, nil)).With("process", os.Getpid())
}

// eventLog makes log lines of what happens to jobs.
func eventLog(logger *slog.Logger) worker.Observer {
	debug := logger.Enabled(context.Background(), slog.LevelDebug)
	return worker.ObserverFunc(func(e worker.Event) {
		switch e.Type {
		case worker.EventPerformStart, worker.EventPerform:
			if debug {
				logger.Debug(string(e.Type), eventFields(e)...)
			}
		case worker.EventRetry, worker.EventDiscard, worker.EventLost:
			logger.Warn(string(e.Type), eventFields(e)...)
		case worker.EventBury:
			logger.Error(string(e.Type), eventFields(e)...)
		default:
			logger.Info(string(e.Type), eventFields(e)...)
		}
	})
}

func eventFields(e worker.Event) []any {
	fields := []any{"kind", e.Kind, "job_id", e.JobID, "beanstalkd_id", e.BeanstalkID}
	add := func(name string, value any, known bool) {
		if known {
			fields = append(fields, name, value)
		}
	}
	add("tube", e.Tube, e.Tube != "")
	add("attempt", e.Attempt, e.Attempt > 0)
	add("duration", e.Duration, e.Duration > 0)
	add("wait", e.Wait, e.Wait > 0)
	add("reason", e.Reason, e.Reason != "")
	if e.Err != nil {
		add("error", e.Err.Error(), true)
		if crash, ok := errors.AsType[*job.PanicError](e.Err); ok {
			add("stack", string(crash.Stack), true)
		}
	}
	return fields
}
