package broker

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// Replies of the protocol.
const (
	replyBadFormat    = "BAD_FORMAT\r\n"
	replyUnknown      = "UNKNOWN_COMMAND\r\n"
	replyNotFound     = "NOT_FOUND\r\n"
	replyExpectedCRLF = "EXPECTED_CRLF\r\n"
	replyTooBig       = "JOB_TOO_BIG\r\n"
	replyDraining     = "DRAINING\r\n"
	replyOutOfMemory  = "OUT_OF_MEMORY\r\n"
	replyInternal     = "INTERNAL_ERROR\r\n"
	replyTimedOut     = "TIMED_OUT\r\n"
	replyDeadlineSoon = "DEADLINE_SOON\r\n"
)

// session speaks the protocol with one client. All of it runs on one goroutine; what it
// writes waits for its own client alone.
type session struct {
	broker *Broker
	engine *engine
	client *client
	conn   net.Conn
	r      *bufio.Reader
	w      *bufio.Writer
	cut    <-chan struct{} // closed when the connection is closed from here
	over   bool
}

func newSession(b *Broker, conn net.Conn, cut <-chan struct{}) *session {
	return &session{
		broker: b, engine: b.engine, client: b.engine.connect(), conn: conn, cut: cut,
		r: bufio.NewReaderSize(conn, 16<<10), w: bufio.NewWriterSize(conn, 16<<10),
	}
}

func (s *session) end() {
	s.engine.disconnect(s.client)
	_ = s.conn.Close() // gone already is as good
}

// serve carries out commands until the connection ends. Replies go out together once no
// more commands have come.
func (s *session) serve() {
	for !s.over {
		if s.r.Buffered() == 0 && s.w.Flush() != nil {
			return
		}
		line, tooLong, err := s.readLine()
		if err != nil {
			return
		}
		for stalled := s.broker.stalled(); stalled != nil; stalled = s.broker.stalled() {
			if !s.await(nil, stalled) {
				return
			}
		}
		if tooLong {
			s.reply(replyBadFormat)
			continue
		}
		op, args, reply := parseLine(line)
		if reply != "" {
			s.reply(reply)
			continue
		}
		op.run(s, args)
	}
	_ = s.w.Flush() // the client has said that it goes
}

// readLine reads a command. One that is too long is skipped, as beanstalkd skips it:
// what did not fit into its buffer up to the next CRLF.
func (s *session) readLine() (line []byte, tooLong bool, err error) {
	var long []byte
	for {
		chunk, err := s.r.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, false, err
		}
		if long == nil && bytes.HasSuffix(chunk, []byte("\r\n")) && len(chunk) <= maxLine {
			return chunk[:len(chunk)-2], false, nil
		}
		long = append(long, chunk...)
		if end := bytes.Index(long, []byte("\r\n")); end >= 0 && end+2 <= maxLine {
			return long[:end], false, nil
		}
		if len(long) > maxLine && bytes.HasSuffix(long[maxLine:], []byte("\r\n")) {
			return nil, true, nil
		}
		if len(long) > 1<<20 { // nothing to be kept of it but whether it ends
			long = append(long[:maxLine], long[len(long)-1])
		}
	}
}

func (s *session) reply(text string) {
	_, _ = s.w.WriteString(text) // Flush reports it
}

// body answers with a size and that many bytes.
func (s *session) body(head string, body []byte) {
	s.reply(head + strconv.Itoa(len(body)) + "\r\n")
	_, _ = s.w.Write(body) // Flush reports it
	s.reply("\r\n")
}

// found answers a peek.
func (s *session) found(j *job) {
	if j == nil {
		s.reply(replyNotFound)
		return
	}
	s.body(fmt.Sprintf("FOUND %d ", j.id), j.body)
}

func (s *session) reserved(j *job) {
	s.body("RESERVED "+strconv.FormatUint(j.id, 10)+" ", j.body)
}

// await waits for a channel, at most until the timer, and reports false if the client
// hangs up, or is hung up on, meanwhile. A client that has sent its next command already is not watched.
func (s *session) await(timer <-chan time.Time, wake <-chan struct{}) bool {
	if s.w.Flush() != nil {
		return false
	}
	gone := make(chan struct{})
	looked := make(chan struct{})
	if s.r.Buffered() == 0 {
		go func() {
			defer close(looked)
			if _, err := s.r.Peek(1); err != nil && !isTimeout(err) {
				close(gone)
			}
		}()
	} else {
		close(looked)
	}
	alive := true
	select {
	case <-wake:
	case <-timer:
	case <-gone:
		alive = false
	case <-s.cut:
		alive = false
	}
	// Have the look-out come back: a read deadline in the past ends its read.
	if s.conn.SetReadDeadline(time.Unix(1, 0)) != nil {
		alive = false
	}
	<-looked
	if s.conn.SetReadDeadline(time.Time{}) != nil {
		alive = false
	}
	return alive
}

func isTimeout(err error) bool {
	failure, ok := errors.AsType[net.Error](err)
	return ok && failure.Timeout()
}

// readBody reads the body of a put; ok is false if the connection ended.
func (s *session) readBody(size int) (body []byte, ok bool) {
	body = make([]byte, size+2)
	_, err := io.ReadFull(s.r, body)
	return body, err == nil
}

func (s *session) quit(string) { s.over = true }
