//go:build unix

package integration_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/postburner/postburner/broker/brokertest"
	"github.com/postburner/postburner/internal/testwait"
)

// The main job on real input: `postburner enqueue` puts, `postburner work` in forked
// mode runs programs that know nothing of Go.
func TestTheStockBinaryRunsPrograms(t *testing.T) {
	server := brokertest.StartBeanstalkd(t)
	out := filepath.Join(t.TempDir(), "ran")
	program := filepath.Join(t.TempDir(), "send-email")
	script := "#!/bin/sh\nread -r args\nprintf '%s %s\\n' \"$POSTBURNER_JOB_ID\" \"$args\" >> " + out + "\necho sent by a shell script\n"
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	top := fmt.Sprintf("handlers:\n  SendEmail: {exec: [%s]}", program)
	w := startWorker(t, workerOptions{Program: "stock", URL: server.URL(), Forks: 2, Threads: 2, Top: top})
	c := dialRaw(t, server.Addr())
	w.consuming(c, 4)

	enqueue := exec.Command(os.Args[0], "enqueue", "SendEmail", "--args", `{"user_id":7,"name":"Grüße"}`, "--json",
		"--config", filepath.Join(w.dir, "postburner.yml"), "--env", environment)
	enqueue.Env = append(os.Environ(), programVariable+"=stock")
	enqueue.Stderr = os.Stderr
	printed, err := enqueue.Output()
	if err != nil {
		t.Fatalf("enqueue: %v", err)
	}
	var receipt struct {
		JobID       string `json:"job_id"`
		BeanstalkID uint64 `json:"beanstalkd_id"`
		Tube        string `json:"tube"`
	}
	if err := json.Unmarshal(printed, &receipt); err != nil {
		t.Fatalf("enqueue --json printed %q: %v", printed, err)
	}
	if receipt.Tube != tube || receipt.JobID == "" || receipt.BeanstalkID == 0 {
		t.Errorf("receipt is %+v", receipt)
	}
	testwait.Until(t, func() (bool, string) { return c.jobs(tube) == 0, "the job is not done" })
	ran, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if want := receipt.JobID + ` {"user_id":7,"name":"Grüße"}` + "\n"; string(ran) != want {
		t.Errorf("the program was given %q, want %q", ran, want)
	}
	testwait.Until(t, func() (bool, string) {
		return w.log.Contains("sent by a shell script"), "the program's output is not in the log"
	})
	w.stop()
}

func TestNoProgramOutlivesItsWorker(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(w *workerProcess){
		"a stop": func(w *workerProcess) { w.signal(syscall.SIGTERM) },
		"a second signal": func(w *workerProcess) {
			w.signal(syscall.SIGTERM)
			testwait.Until(w.t, func() (bool, string) { return w.log.Contains("stopping: running jobs finish"), "it does not stop" })
			w.signal(syscall.SIGTERM)
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := brokertest.StartBeanstalkd(t)
			pids := filepath.Join(t.TempDir(), "pids")
			script := fmt.Sprintf(`trap "" TERM INT; echo $$$$ >> %s; while :; do sleep 0.1; done`, pids)
			w := startWorker(t, workerOptions{
				Program: "stock", URL: server.URL(), Forks: 2, Threads: 1,
				Keys: "shutdown_timeout: 1", Top: fmt.Sprintf("handlers: {Stubborn: {exec: [sh, -c, '%s']}}", script),
			})
			c := dialRaw(t, server.Addr())
			w.consuming(c, 2)
			id := c.put(tube, 1, 0, 60, `{"job_class":"Stubborn","job_id":"1","arguments":[]}`)
			var pid int
			testwait.Until(t, func() (bool, string) {
				text, err := os.ReadFile(pids)
				if err != nil {
					return false, err.Error()
				}
				_, err = fmt.Sscan(string(text), &pid)
				return err == nil, fmt.Sprintf("the program says %q", text)
			})
			end(w)
			w.wait()
			gone(t, []int{pid})
			testwait.Until(t, func() (bool, string) {
				state := c.stats("stats-job %d", id)["state"]
				return state == "ready", "the job is " + state
			})
		})
	}
}

func TestABadConfigurationStartsNothing(t *testing.T) {
	server := brokertest.StartBeanstalkd(t)
	w := startWorker(t, workerOptions{URL: server.URL(), Forks: 1, Threads: 1, Keys: "thread: 5\ntimeout: soon"})
	if code := w.wait(); code != 78 {
		t.Errorf("exit code %d, want 78", code)
	}
	log := w.log.String()
	for _, want := range []string{"postburner.yml:8:7: ", "did you mean threads?", "postburner.yml:9:", "production.workers.default.timeout"} {
		if !strings.Contains(log, want) {
			t.Errorf("the problems do not contain %q:\n%s", want, log)
		}
	}
	c := dialRaw(t, server.Addr())
	if n := c.stats("stats")["total-connections"]; n != "1" && n != "2" { // this one, and brokertest's look whether the server is up
		t.Errorf("%s connections were made, want none by the worker", n)
	}
}
