package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	// maxLines is how many lines of a job's output are logged; the rest is counted.
	maxLines = 1000
	// maxLineBytes is where a line is cut.
	maxLineBytes = 4096
)

// lines logs the output of one program, line by line.
type lines struct {
	log *slog.Logger

	mu      sync.Mutex // guards what follows
	logged  int
	dropped int
}

// stream is one of the outputs.
type stream struct {
	*lines
	name  string
	level slog.Level
	begun []byte // a line whose end has not come
	cut   bool
}

func (l *lines) stream(name string, level slog.Level) *stream {
	return &stream{lines: l, name: name, level: level}
}

// Write takes output as it comes. It never fails: a program must not end because its log does.
func (s *stream) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		if room := maxLineBytes - len(s.begun); len(line) > room {
			line, s.cut = line[:room], true
		}
		s.begun = append(s.begun, line...)
		if ended {
			s.flush()
		}
		rest = after
	}
	return len(p), nil
}

// flush logs what has come of a line.
func (s *stream) flush() {
	if len(s.begun) == 0 && !s.cut {
		return
	}
	text := strings.TrimSuffix(string(s.begun), "\r")
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	if s.cut {
		text += "… (cut)"
	}
	s.begun, s.cut = s.begun[:0], false
	s.line(s.level, text, s.name)
}

func (l *lines) line(level slog.Level, text, name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.logged == maxLines {
		l.dropped++
		return
	}
	l.logged++
	l.log.Log(context.Background(), level, text, "stream", name)
}

// sum says what was not logged.
func (l *lines) sum() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dropped > 0 {
		l.log.Warn("more output than is logged of one job", "logged", maxLines, "dropped", l.dropped)
	}
}

// compact writes the arguments as one line.
func compact(out *bytes.Buffer, arguments json.RawMessage) error {
	if err := json.Compact(out, arguments); err != nil {
		return err
	}
	return out.WriteByte('\n')
}
