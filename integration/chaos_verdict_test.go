//go:build unix

package integration_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/postburner/postburner/internal/testwait"
)

// chaosAftermath is how long a fault may show after it is over: replies come late on a
// busy machine, and consumers dial again.
const chaosAftermath = 500 * time.Millisecond

// chaosVerdict judges a run by its journals and logs.
type chaosVerdict struct {
	*chaos
	clients []*chaosClient

	runs   map[int][]chaosRun // by number, in the order of their starts
	buried map[int]string     // number → reason
	pids   map[int]bool       // of all workers and their children
}

// chaosRun is one execution of a job.
type chaosRun struct {
	worker     *workerProcess
	pid        int
	start, end time.Time // end is zero if there was none
}

func (v *chaosVerdict) judge() {
	v.read()
	ended, again, acknowledged, unknown := 0, 0, 0, 0
	refused := map[string]int{}
	for _, c := range v.clients {
		acknowledged += len(c.acknowledged)
		unknown += len(c.unknown)
		for reply, n := range c.refused {
			refused[reply] += n
		}
		for _, n := range c.acknowledged {
			switch {
			case slices.ContainsFunc(v.runs[n], chaosRun.hasEnded):
				ended++
			case v.buried[n] != "":
			default:
				v.t.Errorf("job %d was acknowledged and has never ended; its runs: %v", n, v.runs[n])
			}
		}
	}
	if acknowledged != v.form.jobs {
		v.t.Errorf("%d jobs were acknowledged, want %d", acknowledged, v.form.jobs)
	}
	for n, runs := range v.runs {
		ends := slices.DeleteFunc(slices.Clone(runs), func(r chaosRun) bool { return !r.hasEnded() })
		if len(ends) < 2 {
			continue
		}
		again++
		for i := range ends[1:] {
			f := v.explain(ends[i], ends[i+1])
			if f == nil {
				v.t.Errorf("job %d ended twice and no fault explains it: %v, then %v", n, ends[i], ends[i+1])
				continue
			}
			v.t.Logf("job %d ended at %s and again at %s: %s", n, clock(ends[i].end), clock(ends[i+1].end), f)
		}
	}
	for n, reason := range v.buried {
		v.t.Logf("job %d is buried: %s", n, reason)
	}
	v.t.Logf("%d jobs acknowledged, %d of them ended; %d puts of unknown outcome; refused: %v; %d jobs ended more than once, %d buried",
		acknowledged, ended, unknown, refused, again, len(v.buried))
}

// read collects the journals and the logs of all workers.
func (v *chaosVerdict) read() {
	v.runs, v.buried, v.pids = map[int][]chaosRun{}, map[int]string{}, map[int]bool{}
	for _, w := range v.ever {
		v.pids[w.pid()] = true
		open := map[string]int{} // of a process and a number: the index of the run
		for _, e := range w.entries("") {
			v.pids[e.PID] = true
			key := fmt.Sprint(e.PID, " ", e.N)
			switch e.Event {
			case "start":
				open[key] = len(v.runs[e.N])
				v.runs[e.N] = append(v.runs[e.N], chaosRun{worker: w, pid: e.PID, start: e.At})
			case "end":
				v.runs[e.N][open[key]].end = e.At
			}
		}
		for line := range strings.Lines(w.log.String()) {
			var said struct {
				Message string `json:"msg"`
				PID     int    `json:"pid"`
				JobID   string `json:"job_id"`
				Reason  string `json:"reason"`
			}
			if json.Unmarshal([]byte(line), &said) != nil {
				continue // what a dying process has left of one
			}
			switch said.Message {
			case "child started":
				v.pids[said.PID] = true
			case "bury":
				n, err := strconv.Atoi(said.JobID[strings.LastIndexByte(said.JobID, '-')+1:])
				if err != nil || said.Reason == "" {
					v.t.Errorf("a job was buried without a number or a reason: %s", line)
				}
				v.buried[n] = said.Reason
			}
		}
	}
	for _, runs := range v.runs {
		slices.SortFunc(runs, func(a, b chaosRun) int { return a.start.Compare(b.start) })
	}
}

// explain returns a fault that came between a job's start and the answer to its deletion,
// and before it was started again: the nearest, which leaves the least to the aftermath.
func (v *chaosVerdict) explain(first, second chaosRun) *chaosFault {
	for _, late := range []time.Duration{0, chaosAftermath / 10, chaosAftermath} {
		for _, f := range slices.Backward(v.faults) {
			concerns := f.everyone || f.worker != nil && f.worker == first.worker && (f.pid == 0 || f.pid == first.pid)
			if concerns && !f.from.After(first.end.Add(late)) && !f.until.Add(late).Before(first.start) && !f.from.After(second.start) {
				return f
			}
		}
	}
	return nil
}

func (r chaosRun) hasEnded() bool { return !r.end.IsZero() }

func (r chaosRun) String() string {
	return fmt.Sprintf("pid %d of worker %d from %s to %s", r.pid, r.worker.pid(), clock(r.start), clock(r.end))
}

func clock(at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return at.Format("15:04:05.000")
}

// nothingIsLeft waits until none of the run's processes exists, not even as a zombie of the test.
func (v *chaosVerdict) nothingIsLeft() {
	testwait.Until(v.t, func() (bool, string) {
		out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=,stat=").Output()
		if err != nil {
			return false, fmt.Sprintf("ps: %v", err)
		}
		var left []string
		for line := range strings.Lines(string(out)) {
			fields := strings.Fields(line)
			if len(fields) != 3 {
				continue
			}
			pid, err := strconv.Atoi(fields[0])
			if err != nil {
				return false, "ps answered " + line
			}
			zombie := strings.HasPrefix(fields[2], "Z")
			ours := fields[1] == strconv.Itoa(os.Getpid())
			if zombie && ours || !zombie && v.pids[pid] {
				left = append(left, strings.TrimSpace(line))
			}
		}
		return len(left) == 0, "processes are left: " + strings.Join(left, "; ")
	})
}

func TestTheChaosVerdictExplainsNoRunByAFaultElsewhereOrAtAnotherTime(t *testing.T) {
	t.Parallel()
	began := time.Now()
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	ours, other := &workerProcess{}, &workerProcess{}
	first := chaosRun{worker: ours, pid: 7, start: at(10), end: at(12)}
	second := chaosRun{worker: other, pid: 8, start: at(20), end: at(22)}
	for name, test := range map[string]struct {
		fault chaosFault
		want  bool
	}{
		"a cut while it runs":                       {chaosFault{everyone: true, from: at(11), until: at(11)}, true},
		"a stall that begins before and ends later": {chaosFault{everyone: true, from: at(5), until: at(30)}, true},
		"its process is killed":                     {chaosFault{worker: ours, pid: 7, from: at(12), until: at(12)}, true},
		"its worker is killed":                      {chaosFault{worker: ours, from: at(12), until: at(13)}, true},
		"another process of its worker is killed":   {chaosFault{worker: ours, pid: 6, from: at(12), until: at(12)}, false},
		"another worker is killed":                  {chaosFault{worker: other, from: at(12), until: at(12)}, false},
		"a cut before it has started":               {chaosFault{everyone: true, from: at(5), until: at(5)}, false},
		"a cut long after its end":                  {chaosFault{everyone: true, from: at(15), until: at(15)}, false},
		"a rolling restart, which loses nothing":    {chaosFault{from: at(11), until: at(12)}, false},
	} {
		v := &chaosVerdict{chaos: &chaos{faults: []*chaosFault{&test.fault}}}
		if got := v.explain(first, second) != nil; got != test.want {
			t.Errorf("%s explains the second run: %v, want %v", name, got, test.want)
		}
	}
}
