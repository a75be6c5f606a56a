package broker_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/postburner/postburner/broker/brokertest"
)

// The suite speaks to both servers over bare sockets and wants the same bytes of both.
// It shares no code with package beanstalk.

// wire is one raw connection.
type wire struct {
	t    testing.TB
	conn net.Conn
	r    *bufio.Reader
}

func connect(t testing.TB, server brokertest.Server) *wire {
	t.Helper()
	conn, err := net.Dial("tcp", server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &wire{t, conn, bufio.NewReader(conn)}
}

func (w *wire) send(text string) {
	w.t.Helper()
	if err := w.conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		w.t.Fatal(err)
	}
	if _, err := io.WriteString(w.conn, text); err != nil {
		w.t.Fatalf("send %.60q: %v", text, err)
	}
}

// withBody are the replies whose last word is the size of a body.
var withBody = regexp.MustCompile(`^(RESERVED|FOUND|OK)\b.* (\d+)$`)

// reply reads one reply, its body included.
func (w *wire) reply() string {
	w.t.Helper()
	line, err := w.r.ReadString('\n')
	if err != nil {
		w.t.Fatalf("read a reply: %v (got %q)", err, line)
	}
	if m := withBody.FindStringSubmatch(strings.TrimSuffix(line, "\r\n")); m != nil {
		size, err := strconv.Atoi(m[2])
		if err != nil {
			w.t.Fatal(err)
		}
		body := make([]byte, size+2)
		if _, err := io.ReadFull(w.r, body); err != nil {
			w.t.Fatal(err)
		}
		line += string(body)
	}
	return line
}

// want sends a command, whose CRLF is added, and wants this reply, whose CRLF is added too.
func (w *wire) want(command, reply string) {
	w.t.Helper()
	w.send(command + "\r\n")
	if got := w.reply(); got != reply+"\r\n" {
		w.t.Errorf("%.80q answered %.200q, want %q", command, got, reply+"\r\n")
	}
}

// field returns a field of a stats reply.
func (w *wire) field(command, name string) string {
	w.t.Helper()
	w.send(command + "\r\n")
	reply := w.reply()
	for line := range strings.Lines(reply) {
		if value, ok := strings.CutPrefix(line, name+": "); ok {
			return strings.TrimSpace(value)
		}
	}
	w.t.Fatalf("%s has no field %s: %q", command, name, reply)
	return ""
}

func (w *wire) wantField(command, name, want string) {
	w.t.Helper()
	if got := w.field(command, name); got != want {
		w.t.Errorf("%s of %q is %s, want %s", name, command, got, want)
	}
}

func conformance(t *testing.T, name string, test func(t *testing.T, server brokertest.Server)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		brokertest.Each(t, test)
	})
}

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance(t, "every malformed command has beanstalkd's reply", func(t *testing.T, server brokertest.Server) {
		w := connect(t, server)
		w.want("put 1 0 10 1\r\nx", "INSERTED 1")
		for _, c := range [][2]string{
			{"", "UNKNOWN_COMMAND"}, {"foo", "UNKNOWN_COMMAND"}, {"STATS", "UNKNOWN_COMMAND"}, {" stats", "UNKNOWN_COMMAND"}, {"kick", "UNKNOWN_COMMAND"},
			{"reservex", "BAD_FORMAT"}, {"reserve-job 1x", "BAD_FORMAT"}, {"reserve-job x", "BAD_FORMAT"},
			{"put 1 0 1", "BAD_FORMAT"}, {"put 1 0 1 1 z", "BAD_FORMAT"}, {"put 99999999999 0 1 1", "BAD_FORMAT"}, {"put 1 0 1 -1", "BAD_FORMAT"}, {"put 1 0 1 99999999999", "BAD_FORMAT"},
			{"use ", "BAD_FORMAT"}, {"use -x", "BAD_FORMAT"}, {"use a\x00b", "BAD_FORMAT"}, {"use a b", "BAD_FORMAT"}, {"use ä", "BAD_FORMAT"},
			{"watch a b", "BAD_FORMAT"}, {"ignore -x", "BAD_FORMAT"}, {"ignore default", "NOT_IGNORED"}, {"ignore nope", "WATCHING 1"},
			{"pause-tube default", "BAD_FORMAT"}, {"pause-tube default 1x", "BAD_FORMAT"}, {"pause-tube nope 0", "NOT_FOUND"},
			{"peek x", "BAD_FORMAT"}, {"peek 1x", "BAD_FORMAT"}, {"peek 9", "NOT_FOUND"}, {"peek-ready x", "BAD_FORMAT"}, {"peek-readyx", "BAD_FORMAT"}, {"peek-buried", "NOT_FOUND"}, {"peek-delayed", "NOT_FOUND"},
			{"delete x", "BAD_FORMAT"}, {"delete 1x", "BAD_FORMAT"}, {"delete 9", "NOT_FOUND"},
			{"release 1 5", "BAD_FORMAT"}, {"release 1 5 0 x", "BAD_FORMAT"}, {"release 1 5 0", "NOT_FOUND"},
			{"bury 1", "BAD_FORMAT"}, {"bury 1 9 x", "BAD_FORMAT"}, {"bury 1 9", "NOT_FOUND"},
			{"touch 1x", "BAD_FORMAT"}, {"touch 1", "NOT_FOUND"}, {"touch 9", "NOT_FOUND"},
			{"kick x", "BAD_FORMAT"}, {"kick -1", "KICKED 0"}, {"kick 1 x", "KICKED 0"}, {"kick-job x", "BAD_FORMAT"}, {"kick-job 1x", "BAD_FORMAT"}, {"kick-job 1", "NOT_FOUND"},
			{"stats x", "BAD_FORMAT"}, {"stats-job x", "BAD_FORMAT"}, {"stats-job 1x", "BAD_FORMAT"}, {"stats-job 99", "NOT_FOUND"}, {"stats-tube nope", "NOT_FOUND"}, {"stats-tube a b", "BAD_FORMAT"},
			{"list-tubes x", "BAD_FORMAT"}, {"list-tube-used x", "BAD_FORMAT"}, {"list-tubes-watchedx", "BAD_FORMAT"},
			{"reserve-with-timeout 0 1", "RESERVED 1 1\r\nx"}, {"reserve-with-timeout ", "TIMED_OUT"},
		} {
			w.want(c[0], c[1])
		}
	})
	conformance(t, "limits of names, commands and bodies", func(t *testing.T, server brokertest.Server) {
		w := connect(t, server)
		longest := strings.Repeat("a", 200)
		w.want("use "+longest, "USING "+longest)
		w.want("use "+longest+"a", "BAD_FORMAT")
		w.want("use "+strings.Repeat("a", 250), "BAD_FORMAT")
		w.want("use "+strings.Repeat("a", 5000), "BAD_FORMAT")
		w.want("use AZaz09-+/;.$_()", "USING AZaz09-+/;.$_()")
		w.want("put 1 0 1 65536\r\n"+strings.Repeat("x", 65536), "JOB_TOO_BIG")
		w.want("put 1 0 1 65535\r\n"+strings.Repeat("x", 65535), "INSERTED 1")
		w.want("put 1 0 1 2\r\nabcd", "EXPECTED_CRLF") // the CRLF behind it is a command of its own
		if got := w.reply(); got != "UNKNOWN_COMMAND\r\n" {
			t.Errorf("behind a body that is too long: %q", got)
		}
		w.want("put  1  0  1  0\r\n", "INSERTED 3") // 2 went to the body that was refused
		w.want("put 4294967295 4294967295 4294967295 0\r\n", "INSERTED 4")
		w.want("put 4294967296 0 1 0", "BAD_FORMAT")
		w.want("stats-job 3", strings.TrimSuffix(jobStats(3, "AZaz09-+/;.$_()", "ready", 1, 0, 1, 0, 0, 0, 0, 0, 0), "\r\n"))
	})
	conformance(t, "a job's whole life is counted", func(t *testing.T, server brokertest.Server) {
		w := connect(t, server)
		w.want("use t", "USING t")
		w.want("watch t", "WATCHING 2")
		w.want("watch t", "WATCHING 2")
		w.want("ignore default", "WATCHING 1")
		w.want("put 5 0 100 3\r\nabc", "INSERTED 1")
		w.want("peek-ready", "FOUND 1 3\r\nabc")
		w.want("reserve", "RESERVED 1 3\r\nabc")
		w.want("peek-ready", "NOT_FOUND")
		w.want("peek 1", "FOUND 1 3\r\nabc")
		w.want("touch 1", "TOUCHED")
		w.want("release 1 7 0", "RELEASED")
		w.want("reserve-with-timeout 0", "RESERVED 1 3\r\nabc")
		w.want("bury 1 8", "BURIED")
		w.want("peek-buried", "FOUND 1 3\r\nabc")
		w.want("kick 10", "KICKED 1")
		w.want("reserve-job 1", "RESERVED 1 3\r\nabc")
		w.want("reserve-job 1", "NOT_FOUND")
		w.want("release 1 9 100", "RELEASED")
		w.want("peek-delayed", "FOUND 1 3\r\nabc")
		w.want("kick-job 1", "KICKED")
		w.want("stats-job 1", strings.TrimSuffix(jobStats(1, "t", "ready", 9, 100, 100, 0, 3, 0, 2, 1, 2), "\r\n"))
		w.want("delete 1", "DELETED")
		w.want("delete 1", "NOT_FOUND")
		w.wantField("stats-tube t", "cmd-delete", "1")
		w.wantField("stats-tube t", "total-jobs", "1")
		for field, want := range map[string]string{
			"cmd-put": "1", "cmd-reserve": "1", "cmd-reserve-with-timeout": "1", "cmd-release": "2", "cmd-bury": "1", "cmd-kick": "1", "cmd-touch": "1",
			"cmd-use": "1", "cmd-watch": "2", "cmd-ignore": "1", "cmd-delete": "2", "cmd-peek": "1", "cmd-peek-ready": "2", "cmd-peek-buried": "1", "cmd-peek-delayed": "1",
			"cmd-stats-job": "1", "cmd-stats-tube": "2", "total-jobs": "1", "max-job-size": "65535", "current-producers": "1", "current-workers": "1", "draining": "false",
		} {
			w.wantField("stats", field, want)
		}
	})
	conformance(t, "the fields of stats, in their order", func(t *testing.T, server brokertest.Server) {
		w := connect(t, server)
		for command, want := range map[string]string{
			"stats":              "current-jobs-urgent current-jobs-ready current-jobs-reserved current-jobs-delayed current-jobs-buried cmd-put cmd-peek cmd-peek-ready cmd-peek-delayed cmd-peek-buried cmd-reserve cmd-reserve-with-timeout cmd-delete cmd-release cmd-use cmd-watch cmd-ignore cmd-bury cmd-kick cmd-touch cmd-stats cmd-stats-job cmd-stats-tube cmd-list-tubes cmd-list-tube-used cmd-list-tubes-watched cmd-pause-tube job-timeouts total-jobs max-job-size current-tubes current-connections current-producers current-workers current-waiting total-connections pid version rusage-utime rusage-stime uptime binlog-oldest-index binlog-current-index binlog-records-migrated binlog-records-written binlog-max-size draining id hostname os platform",
			"stats-tube default": "name current-jobs-urgent current-jobs-ready current-jobs-reserved current-jobs-delayed current-jobs-buried total-jobs current-using current-watching current-waiting cmd-delete cmd-pause-tube pause pause-time-left",
		} {
			w.send(command + "\r\n")
			var names []string
			for line := range strings.Lines(w.reply()) {
				if name, _, ok := strings.Cut(line, ": "); ok {
					names = append(names, name)
				}
			}
			if got := strings.Join(names, " "); got != want {
				t.Errorf("fields of %s:\n got %s\nwant %s", command, got, want)
			}
		}
	})
	conformance(t, "lowest priority number first, then lowest id, over all watched tubes", func(t *testing.T, server brokertest.Server) {
		w := connect(t, server)
		w.want("watch a", "WATCHING 2")
		w.want("put 3 0 9 1\r\n1", "INSERTED 1")
		w.want("use a", "USING a")
		w.want("put 1 0 9 1\r\n2", "INSERTED 2")
		w.want("put 1 0 9 1\r\n3", "INSERTED 3")
		w.want("use default", "USING default")
		w.want("put 0 0 9 1\r\n4", "INSERTED 4")
		for _, id := range []string{"4", "2", "3", "1"} {
			w.want("reserve", "RESERVED "+id+" 1\r\n"+id)
		}
		w.wantField("stats", "current-jobs-reserved", "4")
	})
	conformance(t, "a closed connection gives its jobs back at once and counts nothing", func(t *testing.T, server brokertest.Server) {
		w, other := connect(t, server), connect(t, server)
		w.want("put 7 0 100 1\r\nx", "INSERTED 1")
		w.want("reserve", "RESERVED 1 1\r\nx")
		other.send("reserve\r\n")
		if err := w.conn.Close(); err != nil {
			t.Fatal(err)
		}
		if got := other.reply(); got != "RESERVED 1 1\r\nx\r\n" {
			t.Errorf("the waiting client got %q", got)
		}
		for field, want := range map[string]string{"reserves": "2", "releases": "0", "timeouts": "0", "pri": "7"} {
			other.wantField("stats-job 1", field, want)
		}
	})
	conformance(t, "kick takes buried jobs in the order of their burial, else the delayed ones", func(t *testing.T, server brokertest.Server) {
		w := connect(t, server)
		for i := 1; i <= 4; i++ {
			w.want("put 5 0 100 1\r\nx", fmt.Sprint("INSERTED ", i))
			w.want("reserve", fmt.Sprintf("RESERVED %d 1\r\nx", i))
		}
		w.want("bury 2 5", "BURIED")
		w.want("bury 1 5", "BURIED")
		w.want("release 3 5 100", "RELEASED")
		w.want("release 4 5 50", "RELEASED")
		w.want("peek-buried", "FOUND 2 1\r\nx")
		w.want("peek-delayed", "FOUND 4 1\r\nx")
		w.want("kick 1", "KICKED 1")
		w.wantField("stats-job 2", "state", "ready")
		w.want("kick 99", "KICKED 1")
		w.wantField("stats-job 3", "state", "delayed")
		w.want("kick 1", "KICKED 1")
		w.wantField("stats-job 4", "state", "ready")
		w.want("kick 99", "KICKED 1")
	})
	conformance(t, "ignoring a tube moves the last one into its place", func(t *testing.T, server brokertest.Server) {
		w := connect(t, server)
		w.want("watch a", "WATCHING 2")
		w.want("watch b", "WATCHING 3")
		w.want("ignore default", "WATCHING 2")
		w.want("list-tubes-watched", "OK 12\r\n---\n- b\n- a\n")
	})
	conformance(t, "a waiting client is told that a lease of its own is about to end", func(t *testing.T, server brokertest.Server) {
		w := connect(t, server)
		w.want("put 5 0 2 1\r\nx", "INSERTED 1")
		w.want("reserve", "RESERVED 1 1\r\nx")
		w.want("reserve-with-timeout 30", "DEADLINE_SOON")
		w.want("touch 1", "TOUCHED")
		w.want("delete 1", "DELETED")
	})
	conformance(t, "a job whose lease has ended is ready again", func(t *testing.T, server brokertest.Server) {
		w, other := connect(t, server), connect(t, server)
		w.want("put 5 0 0 1\r\nx", "INSERTED 1")
		w.wantField("stats-job 1", "ttr", "1") // 0 becomes 1
		w.want("reserve", "RESERVED 1 1\r\nx")
		// The timer of beanstalkd 1.12 may fire on the very instant of the deadline, find the
		// lease not yet over, and stay unset until the holder's next command.
		reply := ""
		for deadline := time.Now().Add(30 * time.Second); reply != "RESERVED 1 1\r\nx\r\n" && time.Now().Before(deadline); {
			w.want("list-tube-used", "USING default")
			other.send("reserve-with-timeout 1\r\n")
			reply = other.reply()
		}
		if reply != "RESERVED 1 1\r\nx\r\n" {
			t.Fatalf("after its lease the job was not handed out: %q", reply)
		}
		w.want("delete 1", "NOT_FOUND")
		other.wantField("stats-job 1", "timeouts", "1")
		other.wantField("stats", "job-timeouts", "1")
		other.want("delete 1", "DELETED")
	})
	conformance(t, "a delayed job becomes ready, and a waiting client gets it", func(t *testing.T, server brokertest.Server) {
		w, other := connect(t, server), connect(t, server)
		other.send("reserve-with-timeout 30\r\n")
		w.want("put 5 1 9 1\r\nx", "INSERTED 1")
		w.wantField("stats-job 1", "state", "delayed")
		if got := other.reply(); got != "RESERVED 1 1\r\nx\r\n" {
			t.Errorf("the waiting client got %q", got)
		}
		w.want("reserve-with-timeout 1", "TIMED_OUT")
	})
	conformance(t, "a paused tube keeps its jobs until the pause ends", func(t *testing.T, server brokertest.Server) {
		w, other := connect(t, server), connect(t, server)
		w.want("put 5 0 9 1\r\nx", "INSERTED 1")
		w.want("pause-tube default 3600", "PAUSED")
		w.wantField("stats-tube default", "pause", "3600")
		w.wantField("stats-tube default", "cmd-pause-tube", "1")
		other.want("reserve-with-timeout 0", "TIMED_OUT")
		other.send("reserve-with-timeout 30\r\n")
		w.want("pause-tube default 0", "PAUSED")
		if got := other.reply(); got != "RESERVED 1 1\r\nx\r\n" {
			t.Errorf("after the pause the waiting client got %q", got)
		}
		w.wantField("stats-tube default", "pause", "0")
	})
	conformance(t, "a tube that nobody refers to vanishes", func(t *testing.T, server brokertest.Server) {
		w := connect(t, server)
		w.want("use gone", "USING gone")
		w.want("put 5 0 9 1\r\nx", "INSERTED 1")
		w.want("use default", "USING default")
		w.want("list-tubes-watched", "OK 14\r\n---\n- default\n")
		w.want("list-tube-used", "USING default")
		w.wantField("stats-tube gone", "current-using", "0")
		w.want("delete 1", "DELETED")
		w.want("stats-tube gone", "NOT_FOUND")
		w.want("list-tubes", "OK 14\r\n---\n- default\n")
	})
	conformance(t, "a held job can be deleted by its holder alone, any other by anyone", func(t *testing.T, server brokertest.Server) {
		w, other := connect(t, server), connect(t, server)
		w.want("put 5 0 100 1\r\nx", "INSERTED 1")
		w.want("put 5 100 100 1\r\nx", "INSERTED 2")
		w.want("reserve", "RESERVED 1 1\r\nx")
		for _, command := range []string{"delete 1", "release 1 0 0", "bury 1 0", "touch 1", "kick-job 1", "reserve-job 1"} {
			other.want(command, "NOT_FOUND")
		}
		other.want("delete 2", "DELETED")
		w.want("bury 1 5", "BURIED")
		other.want("delete 1", "DELETED")
	})
	conformance(t, "many commands in one packet are answered in order", func(t *testing.T, server brokertest.Server) {
		w := connect(t, server)
		var commands bytes.Buffer
		const jobs = 500
		for i := range jobs {
			fmt.Fprintf(&commands, "put 5 0 100 4\r\n%04d\r\n", i)
		}
		for i := range jobs {
			fmt.Fprintf(&commands, "reserve-with-timeout 0\r\ndelete %d\r\n", i+1)
		}
		commands.WriteString("reserve-with-timeout 0\r\nquit\r\n")
		written := make(chan error, 1)
		go func() {
			_, err := w.conn.Write(commands.Bytes())
			written <- err
		}()
		for i := range jobs {
			if got, want := w.reply(), fmt.Sprintf("INSERTED %d\r\n", i+1); got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
		}
		for i := range jobs {
			if got, want := w.reply()+w.reply(), fmt.Sprintf("RESERVED %d 4\r\n%04d\r\nDELETED\r\n", i+1, i); got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
		}
		if got := w.reply(); got != "TIMED_OUT\r\n" {
			t.Errorf("at the end: %q", got)
		}
		if err := <-written; err != nil {
			t.Error(err)
		}
		if _, err := w.r.ReadByte(); err != io.EOF {
			t.Errorf("after quit the connection gives %v, want the end", err)
		}
	})
	conformance(t, "a thousand connections wait and each gets a job", func(t *testing.T, server brokertest.Server) {
		const n = 1000
		var waiting []*wire
		for range n {
			w := connect(t, server)
			w.send("reserve-with-timeout 60\r\n")
			waiting = append(waiting, w)
		}
		w := connect(t, server)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for w.field("stats", "current-waiting") != strconv.Itoa(n) {
			<-tick.C
		}
		for i := range n {
			w.want("put 5 0 100 1\r\nx", fmt.Sprint("INSERTED ", i+1))
		}
		seen := map[string]bool{}
		for _, w := range waiting {
			seen[w.reply()] = true
		}
		if len(seen) != n {
			t.Errorf("%d different jobs were handed out, want %d", len(seen), n)
		}
	})
	conformance(t, "a client that does not read holds up nobody else", func(t *testing.T, server brokertest.Server) {
		w, deaf := connect(t, server), connect(t, server)
		w.want("put 5 0 100 60000\r\n"+strings.Repeat("x", 60000), "INSERTED 1")
		if err := deaf.conn.SetWriteDeadline(time.Now().Add(2 * time.Second)); err != nil {
			t.Fatal(err)
		}
		_, _ = deaf.conn.Write(bytes.Repeat([]byte("peek 1\r\n"), 20_000)) // until its answers fill every buffer
		w.want("put 5 0 100 1\r\ny", "INSERTED 2")
	})
}

func jobStats(id int, tube, state string, pri, delay, ttr, left, reserves, timeouts, releases, buries, kicks int) string {
	body := fmt.Sprintf("---\nid: %d\ntube: %s\nstate: %s\npri: %d\nage: 0\ndelay: %d\nttr: %d\ntime-left: %d\nfile: 0\nreserves: %d\ntimeouts: %d\nreleases: %d\nburies: %d\nkicks: %d\n",
		id, tube, state, pri, delay, ttr, left, reserves, timeouts, releases, buries, kicks)
	return fmt.Sprintf("OK %d\r\n%s\r\n", len(body), body)
}
