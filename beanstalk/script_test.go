package beanstalk_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/postburner/postburner/beanstalk"
)

// script is the other end of one connection: it reads a line, and answers with what
// stands beside it. A line "body" is the one behind put. "" answers nothing, and "EOF" hangs up.
type script [][2]string

// scripted returns a Conn whose first connection follows the first script, its second the
// second, and so on. After the last it cannot dial.
func scripted(t *testing.T, o beanstalk.Options, scripts ...script) *beanstalk.Conn {
	t.Helper()
	next := 0
	o.URL = "beanstalk://scripted"
	o.Dial = func(context.Context) (net.Conn, error) {
		if next == len(scripts) {
			return nil, errors.New("the scripts are over")
		}
		here, there := net.Pipe()
		s := scripts[next]
		next++
		go s.play(t, there)
		t.Cleanup(func() { _ = there.Close() }) // may be closed already
		return here, nil
	}
	if o.Redial == nil {
		o.Redial = func(_ context.Context, failures int, err error) error {
			if failures > 3 {
				return err
			}
			return nil
		}
	}
	return start(t, o)
}

func (s script) play(t *testing.T, conn net.Conn) {
	r := bufio.NewReader(conn)
	for _, step := range s {
		if step[1] == "EOF" && step[0] == "" {
			break
		}
		line, err := r.ReadString('\n')
		if err != nil {
			return // the client has hung up, which the test sees from its side
		}
		if line = strings.TrimSuffix(line, "\r\n"); line != step[0] {
			t.Errorf("the server got %q, want %q", line, step[0])
		}
		if step[1] == "EOF" {
			break
		}
		if step[1] == "" { // writing even nothing to a pipe waits for a reader
			continue
		}
		if _, err := io.WriteString(conn, step[1]); err != nil {
			return
		}
	}
	if len(s) > 0 && s[len(s)-1][1] == "EOF" {
		_ = conn.Close() // nothing is buffered
		return
	}
	_, _ = io.Copy(io.Discard, r) // silent until the client hangs up
}
