package beanstalk

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// answer is a connection whose other end has said all it will ever say.
type answer struct {
	net.Conn
	r io.Reader
}

func (a answer) Read(p []byte) (int, error)     { return a.r.Read(p) }
func (answer) Write(p []byte) (int, error)      { return len(p), nil }
func (answer) Close() error                     { return nil }
func (answer) SetDeadline(time.Time) error      { return nil }
func (answer) SetReadDeadline(time.Time) error  { return nil }
func (answer) SetWriteDeadline(time.Time) error { return nil }

func answering(text string) *link { return newLink(answer{r: strings.NewReader(text)}, 1) }

func TestRepliesToReserve(t *testing.T) {
	t.Parallel()
	for text, wanted := range map[string]error{
		"RESERVED 7 5\r\nhello\r\n":               nil,
		"RESERVED 18446744073709551615 0\r\n\r\n": nil,
		"TIMED_OUT\r\n":                           ErrTimeout,
		"DEADLINE_SOON\r\n":                       ErrDeadlineSoon,
		"":                                        io.EOF,
		"RESER":                                   io.ErrUnexpectedEOF,
		"RESERVED 7 5\r\nhel":                     io.ErrUnexpectedEOF,
		"RESERVED 7 5\r\nhello!!\r\n":             errProtocol,
		"RESERVED 7 5\nhello\r\n":                 errProtocol,
		"RESERVED 7\r\n":                          errProtocol,
		"RESERVED -7 5\r\nhello\r\n":              errProtocol,
		"RESERVED 7 +5\r\nhello\r\n":              errProtocol,
		"RESERVED 18446744073709551616 0\r\n\r\n": errProtocol,
		"RESERVED 7 1073741825\r\n":               errProtocol,
		"RESERVED\r\n":                            errProtocol,
		"RESERVEDX 7 5\r\nhello\r\n":              errProtocol,
		"UNKNOWN_COMMAND\r\n":                     errProtocol,
	} {
		job, err := answering(text).readJob()
		if !errors.Is(err, wanted) {
			t.Errorf("%q: got %v, want %v", text, err, wanted)
		}
		if err == nil && job.ID == 7 && string(job.Body) != "hello" {
			t.Errorf("%q: body %q", text, job.Body)
		}
	}
}

func TestRepliesToPut(t *testing.T) {
	t.Parallel()
	for text, wanted := range map[string]struct {
		result PutResult
		err    error // of the stream
	}{
		"INSERTED 7\r\n":                    {PutResult{ID: 7}, nil},
		"INSERTED 18446744073709551615\r\n": {PutResult{ID: 1<<64 - 1}, nil},
		"BURIED 7\r\n":                      {PutResult{ID: 7, Err: ErrBuried}, nil},
		"DRAINING\r\n":                      {PutResult{Err: ErrDraining}, nil},
		"JOB_TOO_BIG\r\n":                   {PutResult{Err: ErrJobTooBig}, nil},
		"OUT_OF_MEMORY\r\n":                 {PutResult{Err: ErrOutOfMemory}, nil},
		"INSERTED\r\n":                      {PutResult{}, errProtocol},
		"INSERTED x\r\n":                    {PutResult{}, errProtocol},
		"INSERTED 7 \r\n":                   {PutResult{}, errProtocol},
		"BURIED\r\n":                        {PutResult{}, errProtocol},
		"EXPECTED_CRLF\r\n":                 {PutResult{}, errProtocol},
		"USING mail\r\n":                    {PutResult{}, errProtocol},
		"INSERTED 7\n":                      {PutResult{}, errProtocol},
		"INSERTED 7":                        {PutResult{}, io.ErrUnexpectedEOF},
		"":                                  {PutResult{}, io.EOF},
	} {
		var result PutResult
		if err := answering(text).readPut(&result); !errors.Is(err, wanted.err) || result != wanted.result {
			t.Errorf("%q: got %+v, %v; want %+v, %v", text, result, err, wanted.result, wanted.err)
		}
	}
}

func TestALongBodyGrowsAsItArrives(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("x", 2*trustedSize)
	job, err := answering("RESERVED 1 2097152\r\n" + body + "\r\n").readJob()
	if err != nil || string(job.Body) != body {
		t.Errorf("got %d bytes, %v", len(job.Body), err)
	}
	if _, err := answering("RESERVED 1 1073741824\r\nshort").readJob(); !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
}

func FuzzReply(f *testing.F) {
	for _, text := range []string{"RESERVED 1 2\r\nab\r\n", "INSERTED 1\r\n", "USING x\r\nBURIED 2\r\n", "TIMED_OUT\r\n", "DELETED\r\n", "OK 3\r\n---\r\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		l := answering(string(text))
		if job, err := l.readJob(); err == nil {
			header, rest, _ := bytes.Cut(text, []byte("\r\n"))
			if !bytes.HasPrefix(header, []byte("RESERVED ")) || !bytes.HasPrefix(rest, append(bytes.Clone(job.Body), "\r\n"...)) {
				t.Errorf("%q was read as %d %q", text, job.ID, job.Body)
			}
		}
		_, _ = answering(string(text)).readReply("DELETED") // what they answer is for the tables above; here they must not panic
		_ = answering(string(text)).readPut(&PutResult{})
		_ = answering(string(text)).readUsing("mail")
	})
}
