package app

import (
	"log/slog"

	"github.com/postburner/postburner/config"
)

// reload reads the configuration again, for children that are started from now on; a bad one changes nothing.
func (p *program) reload(current *shared, s *settings, logger *slog.Logger) bool {
	fresh, err := s.load()
	if err == nil {
		err = checkHandlers(p.Registry, fresh)
	}
	if err != nil {
		logger.Error("the new configuration is invalid; the old one stays in force", "error", err)
		return false
	}
	if kept := keepParentSettings(current.get(), fresh); len(kept) > 0 {
		logger.Warn("these settings change only when the worker itself is restarted", "keys", kept)
	}
	current.set(fresh)
	return true
}

// keepParentSettings undoes the changes of what the parent itself works by, and names them.
func keepParentSettings(old, fresh *config.Config) (kept []string) {
	if (old.BeanstalkURL == config.Embedded) != (fresh.BeanstalkURL == config.Embedded) {
		kept = append(kept, "beanstalk_url")
		fresh.BeanstalkURL = old.BeanstalkURL
	}
	was, is := &old.Worker, &fresh.Worker
	for _, key := range []struct {
		name    string
		changed bool
	}{
		{"log.file", keep(old.Log.File, &fresh.Log.File)},
		{"forks", keep(was.Forks, &is.Forks)},
		{"threads", keep(was.Threads, &is.Threads)},
		{"memory_limit", keep(was.MemoryLimit, &is.MemoryLimit)},
		{"shutdown_timeout", keep(was.ShutdownTimeout, &is.ShutdownTimeout)},
		{"boot_timeout", keep(was.BootTimeout, &is.BootTimeout)},
		{"liveness_timeout", keep(was.LivenessTimeout, &is.LivenessTimeout)},
	} {
		if key.changed {
			kept = append(kept, key.name)
		}
	}
	return kept
}

// keep undoes a change and reports whether there was one.
func keep[T comparable](was T, is *T) (changed bool) {
	changed = *is != was
	*is = was
	return changed
}
