//go:build unix

package shop_test

import (
	"bufio"
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/postburner/postburner/broker/brokertest"
)

// TestTheShop runs the service and the worker as a user would, on a broker of the test's own.
func TestTheShop(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin+string(filepath.Separator), "./service", "./worker").CombinedOutput(); err != nil {
		t.Fatalf("build the shop: %v\n%s", err, out)
	}
	server := brokertest.Start(t)
	var log output
	worker := exec.Command(filepath.Join(bin, "worker"), "work", "--config", "postburner.yml")
	worker.Env = append(os.Environ(), "BEANSTALK_URL="+server.URL(), "POSTBURNER_ENV=production")
	worker.Stdout, worker.Stderr = &log, &log
	run(t, worker, syscall.SIGTERM)
	service := exec.Command(filepath.Join(bin, "service"), "--listen", "127.0.0.1:0", "--beanstalk", server.URL())
	service.Env = append(os.Environ(), "POSTBURNER_ENV=production")
	out, err := service.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	run(t, service, os.Kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url := strings.TrimSpace(strings.TrimPrefix(line, "shop on "))

	for _, order := range []string{`{"number": 1, "email": "ann@example.com", "photo": "chair.jpg"}`, `{"number": 2, "email": "nobody"}`} {
		response, err := http.Post(url+"/orders", "application/json", strings.NewReader(order))
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusAccepted {
			t.Errorf("POST /orders: %s, %v", response.Status, err)
		}
	}
	for _, want := range []string{"receipt sent", "ann@example.com", "the image server is busy", "photo resized", "order 2 has no email address"} {
		log.await(t, want)
	}
	left := server.Jobs("postburner.production.default")
	if len(left) != 1 || left[0].State != "buried" || len(server.Jobs("postburner.production.photos")) != 0 {
		t.Errorf("left in default: %+v, in photos: %+v; want the order without an address buried, and nothing else", left, server.Jobs("postburner.production.photos"))
	}
}

// run starts a program, and ends it with the test.
func run(t *testing.T, cmd *exec.Cmd, end os.Signal) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(end) // gone already is as good
		err := cmd.Wait()
		if end != os.Kill && err != nil {
			t.Errorf("%s: %v", cmd.Path, err)
		}
	})
}

// output is what a program has written so far.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

func (o *output) await(t *testing.T, text string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(60 * time.Second); !strings.Contains(o.String(), text); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("the log does not say %q:\n%s", text, o)
		}
	}
}
