//go:build unix

package app

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/broker/brokertest"
	"github.com/postburner/postburner/client"
)

// process is a running program with what it has logged.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	dir    string
	exited chan struct{}

	mu  sync.Mutex
	log bytes.Buffer
}

// Write takes what the program and its children write.
func (p *process) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(text)
}

// start starts one of the programs of TestMain in a folder of its own, with the given
// postburner.yml. It is killed at the end of the test if it still runs, and its children with it.
func start(t *testing.T, yml, program string, args ...string) *process {
	t.Helper()
	p := &process{t: t, dir: t.TempDir(), exited: make(chan struct{})}
	p.configure(yml)
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatal(err)
	}
	p.cmd = exec.Command(path, args...)
	p.cmd.Dir = p.dir
	p.cmd.Stdout, p.cmd.Stderr = p, p
	p.cmd.WaitDelay = 5 * time.Second
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // its state says how it ended
		close(p.exited)
	}()
	t.Cleanup(func() {
		children := p.children()
		_ = p.cmd.Process.Kill() // gone already is fine
		<-p.exited
		for _, child := range children {
			_ = syscall.Kill(child, syscall.SIGKILL) // gone already is fine
		}
		if t.Failed() {
			t.Logf("log of %v:\n%s", p.cmd.Args, p.text())
		}
	})
	return p
}

func (p *process) configure(yml string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, "postburner.yml"), []byte(yml), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

func (p *process) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatalf("send %v: %v", sig, err)
	}
}

// says waits until the log has the text so many times.
func (p *process) says(times int, text string) {
	p.t.Helper()
	eventually(p.t.Fatalf, func() (bool, string) {
		got := strings.Count(p.text(), text)
		return got >= times, fmt.Sprintf("the log says %q %d times, want %d", text, got, times)
	})
}

// ends waits for the end and wants an exit code.
func (p *process) ends(want int) {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(time.Minute):
		p.t.Fatal("it does not end")
	}
	if got := p.cmd.ProcessState.ExitCode(); got != want {
		p.t.Errorf("exit code %d (%v), want %d", got, p.cmd.ProcessState, want)
	}
}

// children returns the pids of the living children.
func (p *process) children() (pids []int) {
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=,stat=").Output()
	if err != nil {
		p.t.Errorf("ps: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		var pid, parent int
		var stat string
		if _, err := fmt.Sscan(line, &pid, &parent, &stat); err == nil && parent == p.cmd.Process.Pid && stat[0] != 'Z' {
			pids = append(pids, pid)
		}
	}
	return pids
}

// workerOn is a postburner.yml of development.
func workerOn(server brokertest.Server, worker string, more ...string) string {
	return fmt.Sprintf("development:\n  beanstalk_url: %s\n%s  workers:\n    default: {timeout: 1, %s}\n", server.URL(), strings.Join(more, ""), worker)
}

// put puts a job of a kind without arguments.
func put(t *testing.T, server brokertest.Server, kind string) {
	t.Helper()
	c, err := client.New(client.Options{URL: server.URL(), Environment: "development"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }() // always nil
	if _, err := c.Enqueue(t.Context(), client.Raw{JobKind: kind, Arguments: json.RawMessage("{}")}); err != nil {
		t.Fatal(err)
	}
}

func tubeStats(t *testing.T, server brokertest.Server, tube string) beanstalk.TubeStats {
	t.Helper()
	conn, err := beanstalk.New(beanstalk.Options{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }() // always nil
	stats, err := conn.StatsTube(t.Context(), tube)
	if err != nil {
		t.Fatal(err)
	}
	return stats
}

const devTube = "postburner.development.default"

// holds waits until the tube of development has so many jobs of a state.
func holds(t *testing.T, server *brokertest.Embedded, state string, want int) {
	t.Helper()
	eventually(t.Fatalf, func() (bool, string) {
		got := len(jobsIn(server.Broker, devTube, state))
		return got == want, fmt.Sprintf("%d jobs are %s, want %d", got, state, want)
	})
}

// forksOf runs a test with the jobs in children and once more in the worker's own process.
func forksOf(t *testing.T, test func(t *testing.T, forks int)) {
	for _, forks := range []int{2, 0} {
		t.Run(fmt.Sprint("forks ", forks), func(t *testing.T) {
			t.Parallel()
			test(t, forks)
		})
	}
}

func TestSignalsThatAskForNothingChangeNothing(t *testing.T) {
	t.Parallel()
	forksOf(t, func(t *testing.T, forks int) {
		server := brokertest.Start(t)
		p := start(t, workerOn(server, fmt.Sprintf("forks: %d, threads: 1", forks)), "goworker", "work", "--log-level", "debug", "--log-format", "json")
		p.says(1, "watchdog armed")
		targets := append(p.children(), p.cmd.Process.Pid)
		for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGALRM, syscall.SIGPIPE} {
			for _, pid := range targets {
				if err := syscall.Kill(pid, sig); err != nil {
					t.Fatal(err)
				}
			}
			p.says(len(targets), fmt.Sprintf(`"signal":%q`, sig.String()))
		}
		put(t, server, "Greet")
		p.says(1, "hello from Go")
		holds(t, server, "all", 0)
		p.signal(syscall.SIGTERM)
		p.ends(ExitOK)
		if strings.Contains(p.text(), `"level":"error"`) {
			t.Error("the log has an error")
		}
	})
}

func TestASecondSignalEndsAWorkerWhoseJobCannotBeEnded(t *testing.T) {
	t.Parallel()
	forksOf(t, func(t *testing.T, forks int) {
		server := brokertest.Start(t)
		p := start(t, workerOn(server, fmt.Sprintf("forks: %d, threads: 1, shutdown_timeout: 3000", forks)), "goworker", "work")
		put(t, server, "Stubborn")
		p.says(1, "holding")
		p.signal(syscall.SIGINT)
		p.says(1, "stopping: running jobs finish")
		p.signal(syscall.SIGTERM)
		p.ends(ExitFailure)
		holds(t, server, "ready", 1)
	})
}

func TestAHandlerThatIsStuckDoesNotKeepAStoppedWorker(t *testing.T) {
	t.Parallel()
	server := brokertest.Start(t)
	p := start(t, workerOn(server, "forks: 0, threads: 1, shutdown_timeout: 1"), "goworker", "work")
	put(t, server, "Stubborn")
	p.says(1, "holding")
	p.signal(syscall.SIGTERM)
	p.ends(ExitFailure)
	p.says(1, "handlers ignored the end of their context")
}

func TestQuietLetsRunningJobsFinishAndTakesNoOther(t *testing.T) {
	t.Parallel()
	forksOf(t, func(t *testing.T, forks int) {
		server := brokertest.Start(t)
		p := start(t, workerOn(server, fmt.Sprintf("forks: %d, threads: 1, shutdown_timeout: 1", forks)), "goworker", "work")
		put(t, server, "Hold")
		p.says(1, "holding")
		p.signal(syscall.SIGTSTP)
		p.says(1, "quiet: running jobs finish")
		if forks > 0 { // the idle child's consumer leaves the tube
			eventually(t.Fatalf, func() (bool, string) {
				watching := tubeStats(t, server, devTube).Watching
				return watching == 1, fmt.Sprintf("%d consumers", watching)
			})
		}
		put(t, server, "Greet")
		holds(t, server, "ready", 1)
		p.signal(syscall.SIGTERM)
		p.ends(ExitOK)
		holds(t, server, "ready", 2) // the held one was handed back
		if strings.Contains(p.text(), "hello from Go") {
			t.Error("a quiet worker has taken a job")
		}
	})
}

func TestTTINDumpsTheGoroutinesOfParentAndChildren(t *testing.T) {
	t.Parallel()
	server := brokertest.Start(t)
	p := start(t, workerOn(server, "forks: 2, threads: 1"), "goworker", "work")
	p.says(2, "child is ready")
	p.signal(syscall.SIGTTIN)
	p.says(3, "msg=goroutines count=")
	for _, pid := range append(p.children(), p.cmd.Process.Pid) {
		p.says(1, fmt.Sprintf("msg=goroutine process=%d ", pid))
	}
	p.says(2, "(*Pool).Run")
	p.says(1, "(*Swarm).Run")
	put(t, server, "Greet")
	p.says(1, "hello from Go")
	p.signal(syscall.SIGTERM)
	p.ends(ExitOK)
}

func TestUSR1ReplacesTheChildrenWithTheNewConfiguration(t *testing.T) {
	t.Parallel()
	server := brokertest.Start(t)
	p := start(t, workerOn(server, "forks: 2, threads: 1"), "goworker", "work")
	p.says(2, "child is ready")
	before := p.children()
	replaced := func() bool {
		now := p.children()
		return len(now) == 2 && now[0] != before[0] && now[0] != before[1] && now[1] != before[0] && now[1] != before[1]
	}

	// A bad file changes nothing.
	p.configure(workerOn(server, "forks: two"))
	p.signal(syscall.SIGUSR1)
	p.says(1, "the new configuration is invalid; the old one stays in force")
	p.says(1, "postburner.yml:4:")
	// Neither does a handler that cannot be.
	p.configure(workerOn(server, "forks: 2, threads: 1", "  handlers: {Greet: {exec: [handler, '0']}}\n"))
	p.signal(syscall.SIGUSR1)
	p.says(1, "kind Greet has a handler in Go already")

	// A good one is the new children's; what is the parent's stays, and is named.
	p.configure(workerOn(server, "forks: 3, threads: 1, queues: [other]", "  handlers: {Program: {exec: [handler, '0']}}\n"))
	p.signal(syscall.SIGUSR1)
	p.says(1, "rolling restart is done")
	p.says(1, `keys="[forks]"`)
	if !replaced() {
		t.Errorf("children were %v and are %v, want two others", before, p.children())
	}
	c, err := client.New(client.Options{URL: server.URL(), Environment: "development", DefaultQueue: "other"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }() // always nil
	if _, err := c.Enqueue(t.Context(), client.Raw{JobKind: "Program", Arguments: json.RawMessage(`{"n":1}`)}); err != nil {
		t.Fatal(err)
	}
	p.says(1, `handler of Program got {\"n\":1}`)
	p.signal(syscall.SIGTERM)
	p.ends(ExitOK)
}

func TestUSR1WithoutChildrenIsNoHarm(t *testing.T) {
	t.Parallel()
	server := brokertest.Start(t)
	p := start(t, workerOn(server, "forks: 0, threads: 1"), "goworker", "work")
	p.says(1, "worker starts")
	p.signal(syscall.SIGUSR1)
	p.says(1, "nothing to replace")
	p.signal(syscall.SIGTERM)
	p.ends(ExitOK)
}

func TestAChildIsRecognisedInPs(t *testing.T) {
	t.Parallel()
	server := brokertest.Start(t)
	p := start(t, workerOn(server, "forks: 2, threads: 1"), "goworker", "work")
	p.says(2, "child is ready")
	var lines []string
	for _, pid := range p.children() {
		out, err := exec.Command("ps", "-p", fmt.Sprint(pid), "-o", "args=").Output()
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.TrimSpace(string(out)))
	}
	for slot := range 2 {
		want := fmt.Sprintf("goworker child --env development --worker default --slot %d", slot)
		if !strings.Contains(strings.Join(lines, "\n"), want) {
			t.Errorf("ps shows\n%s\nwant %q", strings.Join(lines, "\n"), want)
		}
	}
	p.signal(syscall.SIGTERM)
	p.ends(ExitOK)
}

func TestParentAndChildrenLogWholeLinesOfJSON(t *testing.T) {
	t.Parallel()
	server := brokertest.Start(t)
	p := start(t, workerOn(server, "forks: 2, threads: 5"), "goworker", "work", "--log-format", "json", "--log-level", "debug")
	for range 50 {
		put(t, server, "Greet")
	}
	p.says(50, "hello from Go")
	holds(t, server, "all", 0)
	p.signal(syscall.SIGTERM)
	p.ends(ExitOK)
	events := map[string]int{}
	for line := range strings.Lines(p.text()) {
		var entry struct {
			Time     time.Time
			Level    string
			Msg      string
			Process  int
			Duration string
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Errorf("log line %q: %v", line, err)
			continue
		}
		if entry.Time.IsZero() || entry.Level == "" || entry.Process == 0 {
			t.Errorf("log line %q lacks time, level or process", line)
		}
		if _, err := time.ParseDuration(entry.Duration); err != nil && entry.Msg == "perform" {
			t.Errorf("log line %q has no duration that reads as one: %v", line, err)
		}
		events[entry.Msg]++
	}
	for _, event := range []string{"perform_start", "perform", "hello from Go"} {
		if events[event] != 50 {
			t.Errorf("%d entries %s, want 50", events[event], event)
		}
	}
}

func TestADemonstrationThatIsEndedFails(t *testing.T) {
	t.Parallel()
	p := start(t, "", "postburner", "demo")
	eventually(t.Fatalf, func() (bool, string) { return len(p.children()) > 0, "no children" })
	p.signal(syscall.SIGTERM)
	p.ends(ExitFailure)
	if want := "postburner: the demonstration was stopped before it was done\n"; !strings.HasSuffix(p.text(), want) {
		t.Errorf("it says %q, want %q at the end", p.text(), want)
	}
	if left := p.children(); len(left) > 0 {
		t.Errorf("children %v are left", left)
	}
}

func TestABulkThatIsInterruptedSaysWhereToGoOn(t *testing.T) {
	t.Parallel()
	server := brokertest.Start(t)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = writer.Close() }() // read no more
	path, err := exec.LookPath("postburner")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := exec.Command(path, "enqueue", "Greet", "--file", "-")
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "POSTBURNER_BEANSTALK_URL="+server.URL())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = reader, &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewWriter(writer)
	for range fileChunk + 10 { // a chunk, and some that wait for the rest of theirs
		_, _ = lines.WriteString("{}\n") // Flush reports it
	}
	if err := lines.Flush(); err != nil {
		t.Fatal(err)
	}
	holds(t, server, "ready", fileChunk)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // its state says how it ended
	if code := cmd.ProcessState.ExitCode(); code != ExitFailure {
		t.Errorf("exit code %d, want %d", code, ExitFailure)
	}
	if want := fmt.Sprintf("%d jobs enqueued, 0 not: stopped behind line %d", fileChunk, fileChunk); !strings.Contains(out.String(), want) {
		t.Errorf("it says %q, want %q", out.String(), want)
	}
	holds(t, server, "ready", fileChunk)
}

func TestRunEndsWithItsContext(t *testing.T) {
	server := brokertest.Start(t)
	var log process
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() {
		code <- Run(ctx, Options{
			Args:   []string{"work", "--forks", "0", "--threads", "1"},
			Stdout: &log, Stderr: &log, Registry: goHandlers(),
			LookupEnv: func(name string) (string, bool) { return server.URL(), name == "POSTBURNER_BEANSTALK_URL" },
		})
	}()
	put(t, server, "Greet")
	holds(t, server, "all", 0)
	cancel()
	if got := <-code; got != ExitOK {
		t.Errorf("exit code %d, want 0:\n%s", got, log.text())
	}
	if !strings.Contains(log.text(), "hello from Go") {
		t.Errorf("the handler's line is not in the log:\n%s", log.text())
	}
}
