package brokertest

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"
)

// Beanstalkd is a real beanstalkd.
type Beanstalkd struct {
	t       testing.TB
	path    string
	addr    string
	args    []string
	process *exec.Cmd     // nil while it is killed
	ended   chan struct{} // closed once process has been waited for
	output  *bytes.Buffer
}

// patience is how long the server may take to accept.
const patience = 30 * time.Second

// StartBeanstalkd starts the real server with more arguments, such as "-b" and a folder
// for jobs that survive a restart. Without beanstalkd on PATH the test is skipped, or
// fails if CI=true or POSTBURNER_REQUIRE_BEANSTALKD=1.
func StartBeanstalkd(t testing.TB, args ...string) *Beanstalkd {
	t.Helper()
	path, err := exec.LookPath("beanstalkd")
	if err != nil {
		const advice = "beanstalkd is not on PATH; `make test-deps` installs it"
		if required() {
			t.Fatal(advice)
		}
		t.Skip("NOT TESTED: " + advice)
	}
	b := &Beanstalkd{t: t, path: path, args: args}
	t.Cleanup(func() {
		if b.process != nil {
			b.Kill()
		}
	})
	for range 10 { // another process may take the port in between
		b.addr = freeAddr(t)
		if b.start() {
			return b
		}
	}
	t.Fatalf("beanstalkd %v did not start: %s", args, b.output)
	return nil
}

func freeAddr(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return addr
}

// start starts the process on the address and waits until it accepts; false if it ends instead.
func (b *Beanstalkd) start() bool {
	host, port, err := net.SplitHostPort(b.addr)
	if err != nil {
		b.t.Fatal(err)
	}
	b.output = &bytes.Buffer{}
	b.process = exec.Command(b.path, append([]string{"-l", host, "-p", port}, b.args...)...)
	b.process.Stdout, b.process.Stderr = b.output, b.output
	if err := b.process.Start(); err != nil {
		b.t.Fatalf("start beanstalkd: %v", err)
	}
	process, ended := b.process, make(chan struct{})
	b.ended = ended
	go func() {
		_ = process.Wait() // how it ended is of no interest, only that it did
		close(ended)
	}()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if conn, err := net.Dial("tcp", b.addr); err == nil {
			_ = conn.Close() // it has served its purpose
			select {
			case <-ended: // somebody else's server
			default:
				return true
			}
		}
		select {
		case <-tick.C:
		case <-ended:
			b.process = nil
			return false
		}
	}
	b.t.Fatalf("beanstalkd does not accept on %s within %v", b.addr, patience)
	return false
}

// Addr returns host and port, the same after a Restart.
func (b *Beanstalkd) Addr() string { return b.addr }

// URL returns the address as a beanstalk_url.
func (b *Beanstalkd) URL() string { return "beanstalk://" + b.addr }

// PID returns the process id of the server that runs now.
func (b *Beanstalkd) PID() int { return b.process.Process.Pid }

// Signal sends a signal to the server, such as SIGUSR1 for drain mode.
func (b *Beanstalkd) Signal(sig os.Signal) {
	b.t.Helper()
	if err := b.process.Process.Signal(sig); err != nil {
		b.t.Fatalf("send %v to beanstalkd: %v", sig, err)
	}
}

// Kill ends the server with SIGKILL and waits until it is gone.
func (b *Beanstalkd) Kill() {
	b.t.Helper()
	_ = b.process.Process.Kill() // gone already is as good
	<-b.ended
	b.process = nil
}

// Restart starts the server again on its address, with its arguments; it must have been killed.
func (b *Beanstalkd) Restart() {
	b.t.Helper()
	if b.process != nil {
		b.t.Fatal("Restart of a server that runs: Kill it first")
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if b.start() {
			return
		}
	}
	b.t.Fatalf("beanstalkd did not start again on %s: %s", b.addr, b.output)
}
