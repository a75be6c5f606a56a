//go:build unix

package app

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/postburner/postburner/broker/brokertest"
)

// intoClosedPipe runs a program whose standard output is a pipe that nobody reads any
// more, as that of `postburner … | head -1` may be.
func intoClosedPipe(t *testing.T, url string, args ...string) (state *os.ProcessState, stderr string) {
	t.Helper()
	path, err := exec.LookPath("postburner")
	if err != nil {
		t.Fatal(err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = writer.Close() }() // the program has its own
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	var complaints bytes.Buffer
	cmd := exec.Command(path, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "POSTBURNER_BEANSTALK_URL="+url)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("{}\n{}\n"), writer, &complaints
	_ = cmd.Run() // its state says how it ended
	return cmd.ProcessState, complaints.String()
}

func TestAClosedPipeEndsWhatOnlyPrints(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"version", "version --json", "check", "schema"} {
		state, stderr := intoClosedPipe(t, "beanstalk://127.0.0.1:1", strings.Fields(args)...)
		status, ok := state.Sys().(syscall.WaitStatus)
		if !ok || !status.Signaled() || status.Signal() != syscall.SIGPIPE || stderr != "" {
			t.Errorf("%s: %v, stderr %q; want the end by SIGPIPE, without a word", args, state, stderr)
		}
	}
}

func TestAClosedPipeDoesNotHideWhatIsEnqueued(t *testing.T) {
	t.Parallel()
	for args, test := range map[string]struct {
		stderr string
		puts   int
	}{
		"enqueue Thing --job-id mine":        {"postburner: job mine is enqueued, but its receipt cannot be printed: ", 1},
		"enqueue Thing --job-id mine --json": {"postburner: job mine is enqueued, but its receipt cannot be printed: ", 1},
		"enqueue Thing --file -":             {"postburner: 2 jobs enqueued, 0 not, but that cannot be printed: ", 2},
		"enqueue Thing --file - --json":      {"postburner: 2 jobs enqueued, 0 not: given up behind line 2: its receipts cannot be printed: ", 2},
	} {
		server := brokertest.Start(t)
		state, stderr := intoClosedPipe(t, server.URL(), strings.Fields(args)...)
		if state.ExitCode() != ExitFailure || !strings.HasPrefix(stderr, test.stderr) || !strings.HasSuffix(stderr, ": broken pipe\n") {
			t.Errorf("%s: %v, stderr %q; want exit code %d, %q and the broken pipe", args, state, stderr, ExitFailure, test.stderr)
		}
		if got := len(server.Jobs("postburner.development.default")); got != test.puts {
			t.Errorf("%s: %d jobs are enqueued, want %d", args, got, test.puts)
		}
	}
}
