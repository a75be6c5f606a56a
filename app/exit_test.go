package app

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/postburner/postburner/broker/brokertest"
	"github.com/postburner/postburner/config"
)

func TestTheExitCodeOfAnError(t *testing.T) {
	t.Parallel()
	problems := config.Problems{{File: "postburner.yml", Line: 3, Message: "is bad"}}
	for name, test := range map[string]struct {
		err    error
		code   int
		stderr string
	}{
		"none":                         {nil, ExitOK, ""},
		"an error that nothing marks":  {errors.New("no luck"), ExitFailure, "postburner: no luck\n"},
		"of usage":                     {usage(errors.New("what?")), ExitUsage, "postburner: what?\nSee 'work --help'.\n"},
		"of usage, wrapped":            {fmt.Errorf("outer: %w", usage(errors.New("what?"))), ExitUsage, "postburner: outer: what?\nSee 'work --help'.\n"},
		"no usage":                     {usage(nil), ExitOK, ""},
		"of the configuration":         {problems, ExitConfig, problems.Error() + "\n"},
		"of the configuration, joined": {errors.Join(problems, nil), ExitConfig, problems.Error() + "\n"},
		"a code of which all is said":  {&exitError{code: ExitRecycled}, ExitRecycled, ""},
	} {
		var stderr bytes.Buffer
		p := &program{Options: Options{Stderr: &stderr}}
		if code := p.report(&cobra.Command{Use: "work"}, test.err); code != test.code || stderr.String() != test.stderr {
			t.Errorf("%s: exit code %d, stderr %q; want %d, %q", name, code, stderr.String(), test.code, test.stderr)
		}
	}
}

// errClosed is what a closed output answers.
var errClosed = errors.New("the output is closed")

// closing is an output that takes some writes and is closed then.
type closing struct{ left int }

func (c *closing) Write(text []byte) (int, error) {
	if c.left == 0 {
		return 0, errClosed
	}
	c.left--
	return len(text), nil
}

func TestAnOutputThatIsClosedIsAFailure(t *testing.T) {
	t.Parallel()
	jobs := strings.Repeat("{}\n", 5)
	for name, test := range map[string]struct {
		args   string
		takes  int // writes
		stderr string
		puts   int
	}{
		"version":             {"version", 0, "postburner: the output is closed\n", 0},
		"version as JSON":     {"version --json", 0, "postburner: the output is closed\n", 0},
		"check":               {"check", 0, "postburner: the output is closed\n", 0},
		"schema":              {"schema", 0, "postburner: the output is closed\n", 0},
		"broker":              {"broker --listen 127.0.0.1:0", 0, "postburner: the output is closed\n", 0},
		"a job":               {"enqueue Thing --job-id mine", 0, "postburner: job mine is enqueued, but its receipt cannot be printed: the output is closed\n", 1},
		"a job as JSON":       {"enqueue Thing --job-id mine --json", 0, "postburner: job mine is enqueued, but its receipt cannot be printed: the output is closed\n", 1},
		"a file":              {"enqueue Thing --file -", 0, "postburner: 5 jobs enqueued, 0 not, but that cannot be printed: the output is closed\n", 5},
		"a file as JSON":      {"enqueue Thing --file - --json", 0, "postburner: 5 jobs enqueued, 0 not: given up behind line 5: its receipts cannot be printed: the output is closed\n", 5},
		"a file, after lines": {"enqueue Thing --file - --json", 2, "postburner: 5 jobs enqueued, 0 not: given up behind line 5: its receipts cannot be printed: the output is closed\n", 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := brokertest.Start(t)
			var stderr bytes.Buffer
			code := Run(t.Context(), Options{
				Args: strings.Fields(test.args), Stdin: strings.NewReader(jobs), Stdout: &closing{test.takes}, Stderr: &stderr,
				LookupEnv: func(name string) (string, bool) { return server.URL(), name == "POSTBURNER_BEANSTALK_URL" },
			})
			if code != ExitFailure || stderr.String() != test.stderr {
				t.Errorf("exit code %d, stderr %q; want %d, %q", code, stderr.String(), ExitFailure, test.stderr)
			}
			if got := len(server.Jobs("postburner.development.default")); got != test.puts {
				t.Errorf("%d jobs are enqueued, want %d", got, test.puts)
			}
		})
	}
}
