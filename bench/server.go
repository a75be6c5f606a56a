package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// server is a beanstalkd of this run.
type server struct {
	cmd     *exec.Cmd
	addr    string
	version string
}

func startServer() (*server, error) {
	path, err := exec.LookPath("beanstalkd")
	if err != nil {
		return nil, errors.New("beanstalkd is not on PATH: run `make test-deps`, which installs it")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	version, err := exec.Command(path, "-v").Output()
	if err != nil {
		return nil, fmt.Errorf("beanstalkd -v: %w", err)
	}
	s := &server{cmd: exec.Command(path, "-l", "127.0.0.1", "-p", port), addr: addr, version: strings.TrimSpace(string(version))}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); <-time.After(10 * time.Millisecond) {
		if conn, err := net.Dial("tcp", addr); err == nil {
			return s, conn.Close()
		}
	}
	s.stop()
	return nil, fmt.Errorf("beanstalkd does not accept on %s", addr)
}

func (s *server) stop() {
	_ = s.cmd.Process.Kill() // gone already is as good
	_ = s.cmd.Wait()         // killed: the status says nothing new
}

func (s *server) url() string { return "beanstalk://" + s.addr }

// control is a bare connection on which a measurement fills tubes and looks at them.
type control struct {
	conn net.Conn
	r    *bufio.Reader
}

func (s *server) dial() (*control, error) {
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		return nil, err
	}
	return &control{conn, bufio.NewReader(conn)}, nil
}

func (c *control) command(format string, args ...any) (string, error) {
	if _, err := fmt.Fprintf(c.conn, format+"\r\n", args...); err != nil {
		return "", err
	}
	line, err := c.r.ReadString('\n')
	return strings.TrimSuffix(line, "\r\n"), err
}

// count returns one number of stats-tube, 0 if there is no such tube.
func (c *control) count(tube, key string) (int, error) {
	reply, err := c.command("stats-tube %s", tube)
	if err != nil || reply == "NOT_FOUND" {
		return 0, err
	}
	size, err := strconv.Atoi(strings.TrimPrefix(reply, "OK "))
	if err != nil {
		return 0, fmt.Errorf("stats-tube answered %q", reply)
	}
	body := make([]byte, size+2)
	if _, err := io.ReadFull(c.r, body); err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(body)) {
		if value, ok := strings.CutPrefix(line, key+": "); ok {
			return strconv.Atoi(strings.TrimSpace(value))
		}
	}
	return 0, fmt.Errorf("stats-tube has no %s", key)
}

// await polls a number of the tube of work until it is want.
func (c *control) await(key string, want int) error {
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); <-time.After(2 * time.Millisecond) {
		n, err := c.count(workTube, key)
		if err != nil {
			return err
		}
		if n == want {
			return nil
		}
	}
	return fmt.Errorf("%s of %s is not %d after two minutes", key, workTube, want)
}

// fill puts n copies of the body, pipelined.
func (c *control) fill(tube string, n int, body string) error {
	if _, err := c.command("use %s", tube); err != nil {
		return err
	}
	written := make(chan error, 1)
	go func() {
		w := bufio.NewWriterSize(c.conn, 64<<10)
		for range n {
			_, _ = fmt.Fprintf(w, "put 1000 0 600 %d\r\n%s\r\n", len(body), body) // Flush reports it
		}
		written <- w.Flush()
	}()
	for range n {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if !strings.HasPrefix(string(line), "INSERTED ") {
			return fmt.Errorf("put answered %q", line)
		}
	}
	return <-written
}

// drain reserves and deletes what the watched tubes hold until nothing is left.
func (c *control) drain() error {
	for {
		reply, err := c.command("reserve-with-timeout 0")
		if err != nil || reply == "TIMED_OUT" {
			return err
		}
		var id uint64
		var size int
		if _, err := fmt.Sscanf(reply, "RESERVED %d %d", &id, &size); err != nil {
			return fmt.Errorf("reserve answered %q", reply)
		}
		if _, err := c.r.Discard(size + 2); err != nil {
			return err
		}
		if reply, err := c.command("delete %d", id); err != nil || reply != "DELETED" {
			return fmt.Errorf("delete answered %q: %w", reply, err)
		}
	}
}
