package beanstalk

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
)

// maxBody bounds what a size in a reply is believed to be; the server's own limit for
// -z is 1 GiB.
const maxBody = 1 << 30

// readLine returns the next reply line without its CRLF, valid until the next read.
func (l *link) readLine() ([]byte, error) {
	line, err := l.r.ReadSlice('\n')
	if err != nil {
		if len(line) > 0 && err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	line, ok := bytes.CutSuffix(line, []byte("\r\n"))
	if !ok {
		return nil, fmt.Errorf("%w: %q does not end in CR LF", errProtocol, shorten(line))
	}
	return line, nil
}

// readReply reads a one-line reply. reply is nil for the wanted one, an error of the
// replies table for another; err is anything that leaves the stream out of step.
func (l *link) readReply(want string) (reply, err error) {
	line, err := l.readLine()
	if err != nil {
		return nil, err
	}
	if string(line) == want {
		return nil, nil
	}
	if reply, ok := replies[string(line)]; ok {
		return reply, nil
	}
	return nil, fmt.Errorf("%w %q, want %s", errProtocol, shorten(line), want)
}

// readUsing reads the reply to a `use` that has puts behind it. A refusal, by a server out
// of memory, leaves them to another tube, and so is nothing to go on after.
func (l *link) readUsing(tube string) error {
	reply, err := l.readReply("USING " + tube)
	if reply != nil {
		return fmt.Errorf("%w to use %s: %s", errProtocol, tube, reply.Error()) // not wrapped: it answers no put
	}
	return err
}

// readJob reads "RESERVED id size" and the body behind it, or an error reply.
func (l *link) readJob() (*Job, error) {
	const word = "RESERVED"
	line, err := l.readLine()
	if err != nil {
		return nil, err
	}
	rest, ok := bytes.CutPrefix(line, []byte(word))
	if !ok || len(rest) == 0 || rest[0] != ' ' {
		if reply, ok := replies[string(line)]; ok {
			return nil, reply
		}
		return nil, fmt.Errorf("%w %q, want %s", errProtocol, shorten(line), word)
	}
	first, second, _ := bytes.Cut(rest[1:], []byte(" "))
	id, ok := parseUint(first)
	size, ok2 := parseUint(second)
	if !ok || !ok2 || size > maxBody {
		return nil, fmt.Errorf("%w %q", errProtocol, shorten(line))
	}
	body, err := l.readBody(int(size))
	if err != nil {
		return nil, err
	}
	return &Job{ID: id, Body: body, epoch: l.epoch}, nil
}

// trustedSize is what is allocated on the word of a size alone; a longer body grows as it arrives.
const trustedSize = 1 << 20

func (l *link) readBody(size int) ([]byte, error) {
	var body []byte
	if size <= trustedSize {
		body = make([]byte, size+2)
		if _, err := io.ReadFull(l.r, body); err != nil {
			return nil, err
		}
	} else {
		var buf bytes.Buffer
		if _, err := io.CopyN(&buf, l.r, int64(size)+2); err != nil {
			return nil, err
		}
		body = buf.Bytes()
	}
	if body[size] != '\r' || body[size+1] != '\n' {
		return nil, fmt.Errorf("%w: a body of %d bytes does not end in CR LF", errProtocol, size)
	}
	return body[:size:size], nil
}

// parseUint reads a decimal number: digits only, no sign, no overflow.
func parseUint(digits []byte) (n uint64, ok bool) {
	if len(digits) == 0 || len(digits) > 20 {
		return 0, false
	}
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0, false
		}
		next := n*10 + uint64(d-'0')
		if n > (1<<64-1)/10 || next < n*10 {
			return 0, false
		}
		n = next
	}
	return n, true
}

// appendField writes a blank and a number.
func appendField(out []byte, n uint64) []byte {
	return strconv.AppendUint(append(out, ' '), n, 10)
}

// shorten bounds what of a reply gets into a message.
func shorten(line []byte) []byte {
	const limit = 64
	if len(line) > limit {
		return line[:limit]
	}
	return line
}
