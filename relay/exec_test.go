package relay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postburner/postburner/job"
	"github.com/postburner/postburner/relay"
)

// play returns a handler that runs one of the programs of play_test.go.
func play(args ...string) *relay.Exec {
	return &relay.Exec{Program: os.Args[0], Args: append([]string{"play"}, args...), Environment: "test"}
}

// output is what a job logged.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

// entry is a log line of a job.
type entry struct {
	Level, Msg, Stream string
	JobID              string `json:"job_id"`
	Program            string
	Logged, Dropped    int
}

func (o *output) entries(t *testing.T) (entries []entry) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for line := range strings.Lines(o.buf.String()) {
		var e entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("log line %q: %v", line, err)
		}
		entries = append(entries, e)
	}
	return entries
}

// messages returns what came on one stream.
func (o *output) messages(t *testing.T, stream string) (messages []string) {
	t.Helper()
	for _, e := range o.entries(t) {
		if e.Stream == stream {
			messages = append(messages, e.Msg)
		}
	}
	return messages
}

// aJob returns a job, and where it logs.
func aJob(arguments string) (*job.Job, *output) {
	out := &output{}
	return &job.Job{
		Envelope:    &job.Envelope{Kind: "Thing", ID: "id-1", Queue: "things", Arguments: json.RawMessage(arguments)},
		BeanstalkID: 17, Tube: "postburner.test.things",
		Logger: slog.New(slog.NewJSONHandler(out, nil)),
	}, out
}

func TestTheExitCodeDecidesAboutTheJob(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		program []string
		action  job.Action
		text    string
	}{
		"0 is done":                        {[]string{"exit", "0"}, job.ActionDone, ""},
		"65 buries":                        {[]string{"exit", "65"}, job.ActionBury, "exit status 65"},
		"75 is tried again":                {[]string{"exit", "75"}, job.ActionRetry, "exit status 75"},
		"1 is tried again":                 {[]string{"exit", "1"}, job.ActionRetry, "exit status 1"},
		"any other is tried again":         {[]string{"exit", "255"}, job.ActionRetry, "exit status 255"},
		"a signal is tried again":          {[]string{"die"}, job.ActionRetry, "signal: killed"},
		"stdin closed unread is no matter": {[]string{"deaf"}, job.ActionDone, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if strings.Contains(test.text, "signal") && !hasSignals {
				test.text = "exit status"
			}
			j, _ := aJob(`[{"pad":"` + strings.Repeat("x", 1<<20) + `"}]`) // more than any pipe holds
			verdict := job.VerdictOf(play(test.program...).HandleJob(t.Context(), j))
			if verdict.Action != test.action {
				t.Errorf("the job is to be %v, want %v (%v)", verdict.Action, test.action, verdict.Err)
			}
			if test.text != "" && (verdict.Err == nil || !strings.Contains(verdict.Err.Error(), test.text)) {
				t.Errorf("error %v, want one that says %q", verdict.Err, test.text)
			}
		})
	}
}

func TestTheArgumentsComeAsOneLineOnStdin(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ arguments, want string }{
		"a single object": {`[{"user_id": 7, "name": "Grüße\n", "big": 12345678901234567890}]`, `{"user_id":7,"name":"Grüße\n","big":12345678901234567890}`},
		"ActiveJob keywords, without their markers": {
			`[{"id": 1, "_aj_ruby2_keywords": ["id"]}]`, `{"id":1}`,
		},
		"positional arguments": {"[1,\n \"two\"]", `[1,"two"]`},
		"none":                 {`[]`, `[]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j, out := aJob(test.arguments)
			if err := play("cat").HandleJob(t.Context(), j); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{test.want}, out.messages(t, "stdout")); diff != "" {
				t.Errorf("what the program read (- want, + got):\n%s", diff)
			}
		})
	}
}

func TestAProgramSeesItsJobAndNoSecrets(t *testing.T) {
	t.Setenv("DATABASE_PASSWORD", "secret")
	t.Setenv("POSTBURNER_BEANSTALK_URL", "beanstalk://:secret@host")
	t.Setenv("LANG", "de_DE.UTF-8")
	j, out := aJob(`[]`)
	j.RetryCount = 2
	j.Schedule = &job.Schedule{Name: "nightly", RunAt: time.Date(2026, 3, 1, 4, 0, 0, 0, time.FixedZone("", 3600))}
	if err := play("env").HandleJob(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	got := out.messages(t, "stdout")
	slices.Sort(got)
	want := []string{
		"HOME=" + os.Getenv("HOME"), "LANG=de_DE.UTF-8", "PATH=" + os.Getenv("PATH"),
		"POSTBURNER_ATTEMPT=3", "POSTBURNER_BEANSTALKD_ID=17", "POSTBURNER_ENV=test", "POSTBURNER_JOB_CLASS=Thing", "POSTBURNER_JOB_ID=id-1",
		"POSTBURNER_QUEUE=things", "POSTBURNER_RUN_AT=2026-03-01T03:00:00Z", "POSTBURNER_SCHEDULE=nightly", "POSTBURNER_TUBE=postburner.test.things",
	}
	got = slices.DeleteFunc(got, func(v string) bool { return strings.HasPrefix(strings.ToUpper(v), "SYSTEMROOT=") }) // without which Windows starts nothing
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("environment (- want, + got):\n%s", diff)
	}
}

func TestAVariableThatCannotBeIsLeftOut(t *testing.T) {
	t.Parallel()
	j, out := aJob(`[]`)
	j.ID = "zero\x00byte"
	if err := play("env").HandleJob(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	for _, variable := range out.messages(t, "stdout") {
		if strings.HasPrefix(variable, "POSTBURNER_JOB_ID=") {
			t.Errorf("the program was given %q", variable)
		}
	}
}

func TestNoShellLooksAtTheArguments(t *testing.T) {
	t.Parallel()
	j, out := aJob(`[]`)
	if err := play("args", "$HOME", "; exit 1", "a  b", "*", "").HandleJob(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{`["$HOME" "; exit 1" "a  b" "*" ""]`}, out.messages(t, "stdout")); diff != "" {
		t.Errorf("arguments (- want, + got):\n%s", diff)
	}
}

func TestOutputBecomesLogLinesOfTheJob(t *testing.T) {
	t.Parallel()
	j, out := aJob(`[]`)
	if err := play("say", "all is well", "or not").HandleJob(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	got := out.entries(t)
	slices.SortFunc(got, func(a, b entry) int { return strings.Compare(a.Stream, b.Stream) })
	want := []entry{
		{Level: "WARN", Msg: "or not", Stream: "stderr", JobID: "id-1", Program: os.Args[0]},
		{Level: "INFO", Msg: "all is well", Stream: "stdout", JobID: "id-1", Program: os.Args[0]},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("log lines (- want, + got):\n%s", diff)
	}
}

func TestLongLinesAreCutAndBinaryIsMadePrintable(t *testing.T) {
	t.Parallel()
	j, out := aJob(`[]`)
	if err := play("noise").HandleJob(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	want := []string{strings.Repeat("x", 4096) + "… (cut)", "\uFFFD\x00 binary", "last without an end"}
	if diff := cmp.Diff(want, out.messages(t, "stdout")); diff != "" {
		t.Errorf("log lines (- want, + got):\n%s", diff)
	}
}

func TestTooManyLinesAreCounted(t *testing.T) {
	t.Parallel()
	j, out := aJob(`[]`)
	if err := play("lines", "1234").HandleJob(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	if got := len(out.messages(t, "stdout")); got != 1000 {
		t.Errorf("%d lines logged, want 1000", got)
	}
	entries := out.entries(t)
	if last := entries[len(entries)-1]; last.Logged != 1000 || last.Dropped != 234 {
		t.Errorf("the last entry is %+v, want one that counts 234 dropped lines", last)
	}
}

// started starts the handler and waits until the program has written the file.
func started(t *testing.T, e *relay.Exec, file string) (end context.CancelCauseFunc, ended <-chan error) {
	t.Helper()
	ctx, end := context.WithCancelCause(t.Context())
	t.Cleanup(func() { end(nil) })
	j, _ := aJob(`[]`)
	result := make(chan error, 1)
	go func() { result <- e.HandleJob(ctx, j) }()
	eventually(t, func() (bool, string) {
		select {
		case err := <-result:
			t.Fatalf("the program has ended: %v", err)
		default:
		}
		text, err := os.ReadFile(file)
		return len(text) > 0, fmt.Sprint("the program has not started: ", err)
	})
	return end, result
}

func result(t *testing.T, ended <-chan error) error {
	t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(30 * time.Second):
		t.Fatal("the handler has not returned")
		return nil
	}
}

func eventually(t *testing.T, condition func() (bool, string)) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); ; <-tick.C {
		ok, seen := condition()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(seen)
		}
	}
}

func TestTheEndOfTheContextKillsAProgramThatIgnoresTerm(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "notes")
	e := play("stubborn", file)
	e.KillAfter = 100 * time.Millisecond
	end, ended := started(t, e, file)
	end(job.ErrShutdown)
	if err := result(t, ended); !errors.Is(err, job.ErrShutdown) {
		t.Errorf("error %v, want one that is the context's cause", err)
	}
}

func TestAContextThatHasEndedStartsNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(job.ErrLeaseLost)
	file := filepath.Join(t.TempDir(), "notes")
	j, _ := aJob(`[]`)
	if err := play("wait", file, "0").HandleJob(ctx, j); !errors.Is(err, job.ErrLeaseLost) {
		t.Errorf("error %v, want the context's cause", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the program was started")
	}
}

func TestAProgramThatCannotBeStartedIsAFailedAttempt(t *testing.T) {
	t.Parallel()
	j, _ := aJob(`[]`)
	err := (&relay.Exec{Program: filepath.Join(t.TempDir(), "gone")}).HandleJob(t.Context(), j)
	if v := job.VerdictOf(err); v.Action != job.ActionRetry || !strings.Contains(err.Error(), "start program") {
		t.Errorf("verdict %v, error %v; want to retry what could not be started", v.Action, err)
	}
}

func TestArgumentsThatAreNoArrayAreAFailedAttempt(t *testing.T) {
	t.Parallel()
	j, _ := aJob(`{`)
	if err := play("exit", "0").HandleJob(t.Context(), j); err == nil {
		t.Error("no error")
	}
}

func TestAnAttemptThatIsNotKnownIsAFailedAttempt(t *testing.T) {
	t.Parallel()
	j, _ := aJob(`[]`)
	j.AttemptFunc = func(context.Context) (int, error) { return 0, errors.New("no answer") }
	if err := play("exit", "0").HandleJob(t.Context(), j); err == nil || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("error %v, want the one of the question", err)
	}
}

func TestCheckSaysWhyAProgramCannotBeStarted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ program, want string }{
		"one that can":              {os.Args[0], ""},
		"a path to nothing":         {filepath.Join(dir, "gone"), "does not exist"},
		"a name not on PATH":        {"no-such-program-anywhere", "is not on PATH"},
		"a file without permission": {plain, "is not executable: chmod +x it"},
		"a folder":                  {dir, "program " + dir},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !hasSignals && name != "a name not on PATH" && test.want != "" {
				test.want = "program" // Windows looks at the name's extension, not at permissions
			}
			err := (&relay.Exec{Program: test.program}).Check()
			if test.want == "" {
				if err != nil {
					t.Errorf("error %v, want none", err)
				}
			} else if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one that says %q", err, test.want)
			}
		})
	}
}
