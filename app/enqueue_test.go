package app

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/postburner/postburner/broker/brokertest"
)

// forgetful stands before a server: it passes on everything up to the first job of a
// connection, and closes that without an answer.
func forgetful(t *testing.T) (url string) {
	t.Helper()
	server := brokertest.Start(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() }) // nothing is left to do with it
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // closed by the cleanup
			}
			go forget(conn, server.Addr())
		}
	}()
	return "beanstalk://" + listener.Addr().String()
}

func forget(conn net.Conn, addr string) {
	defer func() { _ = conn.Close() }() // that is the fault
	server, err := net.Dial("tcp", addr)
	if err != nil {
		return // the test is over
	}
	defer func() { _ = server.Close() }() // the answers are of no interest any more
	go func() { _, _ = io.Copy(conn, server) }()
	buf := make([]byte, 4096)
	for {
		n, err := conn.Read(buf)
		if err != nil || bytes.Contains(buf[:n], []byte("put ")) {
			return
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return // the test is over
		}
	}
}

// enqueueHere runs enqueue in this process.
func enqueueHere(t *testing.T, url string, in io.Reader, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, complaints bytes.Buffer
	code = Run(t.Context(), Options{
		Args: append([]string{"enqueue"}, args...), Stdin: in, Stdout: &out, Stderr: &complaints,
		LookupEnv: func(name string) (string, bool) { return url, name == "POSTBURNER_BEANSTALK_URL" },
	})
	return code, out.String(), complaints.String()
}

func TestAJobWhoseAnswerIsLostIsNamed(t *testing.T) {
	t.Parallel()
	url := forgetful(t)
	code, stdout, stderr := enqueueHere(t, url, nil, "Thing", "--job-id", "mine")
	if code != ExitFailure || stdout != "" || !strings.Contains(stderr, "the reply was lost") || !strings.Contains(stderr, "its job_id is mine") {
		t.Errorf("exit code %d, stdout %q, stderr %q; want %d, nothing, and the job_id to look for", code, stdout, stderr, ExitFailure)
	}
	code, _, stderr = enqueueHere(t, url, strings.NewReader(`{"kind":"Thing","job_id":"mine"}`), "--file", "-")
	if code != ExitFailure || !strings.Contains(stderr, "standard input:1: may be enqueued or not; its job_id is mine\n") || !strings.Contains(stderr, "given up behind line 1") {
		t.Errorf("exit code %d, stderr %q; want %d, the line and the job_id to look for", code, stderr, ExitFailure)
	}
}

func TestALineThatIsTooLongKeepsNoOtherBack(t *testing.T) {
	t.Parallel()
	server := brokertest.Start(t)
	lines := `{"kind":"A"}` + "\n" + strings.Repeat("x", maxLine+1) + "\n" + `{"kind":"B"}` + "\n" + `{"kind":"C"}`
	code, _, stderr := enqueueHere(t, server.URL(), strings.NewReader(lines), "--file", "-")
	if want := "standard input:2: is longer than 16 MiB\n"; code != ExitFailure || !strings.Contains(stderr, want) {
		t.Errorf("exit code %d, stderr %q; want %d and %q", code, stderr, ExitFailure, want)
	}
	if n := len(server.Jobs("postburner.development.default")); n != 3 {
		t.Errorf("%d jobs are there, want the other three", n)
	}
}

func TestAByteOrderMarkIsNoPartOfTheFirstLine(t *testing.T) {
	t.Parallel()
	batches := make(chan batch, 1)
	readJobs(strings.NewReader("\xef\xbb\xbf{\"kind\":\"Thing\"}\r\n"), jobSpec{}, batches, nil)
	if b := <-batches; len(b.items) != 1 || len(b.bad) != 0 {
		t.Errorf("%d jobs, problems %v; want one job", len(b.items), b.bad)
	}
}
