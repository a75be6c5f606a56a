//go:build unix

package integration_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

// rawClient speaks beanstalkd's protocol over a bare socket: the independent
// client that puts jobs and looks at what became of them.
type rawClient struct {
	t    testing.TB
	conn net.Conn
	r    *bufio.Reader
}

func dialRaw(t testing.TB, addr string) *rawClient {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		t.Fatalf("dial the server: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &rawClient{t, conn, bufio.NewReader(conn)}
}

// command sends one command and returns the reply line; a body follows with body.
func (c *rawClient) command(format string, args ...any) string {
	c.t.Helper()
	if err := c.conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		c.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(c.conn, format+"\r\n", args...); err != nil {
		c.t.Fatalf("%s: %v", format, err)
	}
	return c.line()
}

func (c *rawClient) line() string {
	c.t.Helper()
	line, err := c.r.ReadString('\n')
	if err != nil {
		c.t.Fatalf("read a reply: %v", err)
	}
	return strings.TrimSuffix(line, "\r\n")
}

// stats returns the dictionary that a stats command answers; nil for NOT_FOUND.
func (c *rawClient) stats(format string, args ...any) map[string]string {
	c.t.Helper()
	reply := c.command(format, args...)
	if reply == "NOT_FOUND" {
		return nil
	}
	body := c.body(reply)
	dict := map[string]string{}
	for line := range strings.Lines(body) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			dict[key] = strings.Trim(value, `"`)
		}
	}
	return dict
}

// body reads what follows a reply whose last word is a size.
func (c *rawClient) body(reply string) string {
	c.t.Helper()
	size, err := strconv.Atoi(reply[strings.LastIndexByte(reply, ' ')+1:])
	if err != nil {
		c.t.Fatalf("reply %q has no size", reply)
	}
	body := make([]byte, size+2)
	if _, err := io.ReadFull(c.r, body); err != nil {
		c.t.Fatal(err)
	}
	return string(body[:size])
}

// count returns one number of stats-tube, 0 if the tube does not exist.
func (c *rawClient) count(tube, key string) int {
	c.t.Helper()
	stats := c.stats("stats-tube %s", tube)
	if stats == nil {
		return 0
	}
	n, err := strconv.Atoi(stats[key])
	if err != nil {
		c.t.Fatalf("stats-tube %s has no %s: %v", tube, key, stats)
	}
	return n
}

// jobs returns how many jobs the tube holds in whatever state.
func (c *rawClient) jobs(tube string) int {
	c.t.Helper()
	return c.count(tube, "current-jobs-ready") + c.count(tube, "current-jobs-reserved") +
		c.count(tube, "current-jobs-delayed") + c.count(tube, "current-jobs-buried")
}

// put puts one job and returns its id.
func (c *rawClient) put(tube string, pri uint32, delay, ttr int, body string) uint64 {
	c.t.Helper()
	if reply := c.command("use %s", tube); reply != "USING "+tube {
		c.t.Fatalf("use %s: %s", tube, reply)
	}
	reply := c.command("put %d %d %d %d\r\n%s", pri, delay, ttr, len(body), body)
	return insertedID(c.t, reply)
}

// putAll pipelines many jobs of one tube and returns their ids in order.
func (c *rawClient) putAll(tube string, pri uint32, ttr int, bodies []string) []uint64 {
	c.t.Helper()
	if reply := c.command("use %s", tube); reply != "USING "+tube {
		c.t.Fatalf("use %s: %s", tube, reply)
	}
	if err := c.conn.SetDeadline(time.Now().Add(60 * time.Second)); err != nil {
		c.t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() {
		w := bufio.NewWriter(c.conn)
		for _, body := range bodies {
			_, _ = fmt.Fprintf(w, "put %d 0 %d %d\r\n%s\r\n", pri, ttr, len(body), body) // Flush reports it
		}
		written <- w.Flush()
	}()
	ids := make([]uint64, len(bodies))
	for i := range ids {
		ids[i] = insertedID(c.t, c.line())
	}
	if err := <-written; err != nil {
		c.t.Fatalf("put: %v", err)
	}
	return ids
}

func insertedID(t testing.TB, reply string) uint64 {
	t.Helper()
	var id uint64
	if _, err := fmt.Sscanf(reply, "INSERTED %d", &id); err != nil {
		t.Fatalf("put answered %q", reply)
	}
	return id
}

// activeJob writes a body as a Rails client does, keyword arguments included.
func activeJob(kind string, n int, more string) string {
	return fmt.Sprintf(`{"job_class":%q,"job_id":"00000000-0000-4000-8000-%012d","queue_name":"default","priority":null,"arguments":[{"n":%d%s}],"executions":0,"enqueued_at":"2026-12-01T04:43:33Z"}`, kind, n, n, more)
}

// numbered makes n bodies of one kind.
func numbered(kind string, n int) []string {
	bodies := make([]string, n)
	for i := range bodies {
		bodies[i] = activeJob(kind, i, "")
	}
	return bodies
}
