package beanstalk

import (
	"bufio"
	"crypto/tls"
	"net"
	"sync/atomic"
	"time"

	gobeanstalk "github.com/beanstalkd/go-beanstalk"
)

// link is one network connection. go-beanstalk and the codec of our own share it:
// both read through r, and only one command is under way at a time.
type link struct {
	conn    net.Conn
	r       *bufio.Reader
	library *gobeanstalk.Conn
	epoch   uint64

	gone     atomic.Bool // closed on purpose, from outside
	deadline time.Time   // as set on conn
	sent     int         // bytes of the running command that went out
	wanted   int         // bytes that it meant to send
	watching bool        // the tubes are watched
	used     string      // the tube in use, as the server knows it
	libUsed  string      // the tube in use, as go-beanstalk believes it
	out      []byte      // reused for writing
}

func newLink(conn net.Conn, epoch uint64) *link {
	l := &link{conn: conn, r: bufio.NewReaderSize(conn, 16<<10), epoch: epoch, used: "default", libUsed: "default"}
	l.library = gobeanstalk.NewConn(l)
	return l
}

// Read, Write and Close are what go-beanstalk sees.
func (l *link) Read(p []byte) (int, error) { return l.r.Read(p) }

func (l *link) Write(p []byte) (int, error) {
	n, err := l.conn.Write(p)
	l.wanted += len(p)
	l.sent += n
	return n, err
}

// Close is called by go-beanstalk's Close.
func (l *link) Close() error { return l.conn.Close() }

// close ends the connection at once: TLS would say goodbye first, and wait for that to be
// taken. That the connection may be closed already is of no interest.
func (l *link) close() {
	conn := l.conn
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	_ = conn.Close()
}

// abandon closes the link on purpose: no failure, and whatever waits on it ends.
func (l *link) abandon() {
	l.gone.Store(true)
	l.close()
}

// begin starts a command that must be answered within d. Setting a deadline costs
// more than all else that is done for a short job, so one that is at most a quarter
// of d too early stands.
func (l *link) begin(d time.Duration) error {
	l.sent, l.wanted = 0, 0
	now := time.Now()
	if left := l.deadline.Sub(now); left <= d && left >= d-d/4 {
		return nil
	}
	l.deadline = now.Add(d)
	return l.conn.SetDeadline(l.deadline)
}

// arrived reports whether the running command has been sent in full, so that the server may carry it out.
func (l *link) arrived() bool { return l.sent > 0 && l.sent == l.wanted }
