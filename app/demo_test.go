package app

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/worker/swarm"
)

func TestTheDemonstrationHasItsJobsOfEachSort(t *testing.T) {
	t.Parallel()
	got := map[string]int{}
	for _, item := range demoItems() {
		got[item.Args.Kind()]++
	}
	want := map[string]int{
		kindSucceed: demoJobs - demoFailOnce - demoFail - demoPanic, kindFailOnce: demoFailOnce, kindFail: demoFail, kindPanic: demoPanic,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("jobs by kind (- want, + got):\n%s", diff)
	}
}

func TestANumberThatDoesNotAddUpIsNamed(t *testing.T) {
	t.Parallel()
	good := func() tally {
		return tally{
			executed: 1050, succeeded: 990, panicked: 2, recycled: 10,
			server:   beanstalk.TubeStats{TotalJobs: 1000, Deletes: 990, Buried: 10},
			children: swarm.Heartbeat{Started: 1050, Done: 990, Retried: 50, Buried: 10},
		}
	}
	if err := good().check(); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(t *tally){
		"executions, as the handlers wrote: 1051, want 1050":  func(t *tally) { t.executed++ },
		"successes, as the handlers wrote: 989, want 990":     func(t *tally) { t.succeeded-- },
		"panics, as the handlers wrote: 1, want 2":            func(t *tally) { t.panicked-- },
		"jobs put, as the server counted: 999, want 1000":     func(t *tally) { t.server.TotalJobs-- },
		"jobs deleted, as the server counted: 991, want 990":  func(t *tally) { t.server.Deletes++ },
		"jobs left on the server: 11, want 10":                func(t *tally) { t.server.Ready++ },
		"jobs buried on the server: 9, want 10":               func(t *tally) { t.server.Buried-- },
		"jobs started, as the children said: 1049, want 1050": func(t *tally) { t.children.Started-- },
		"jobs done, as the children said: 989, want 990":      func(t *tally) { t.children.Done-- },
		"jobs retried, as the children said: 51, want 50":     func(t *tally) { t.children.Retried++ },
		"jobs buried, as the children said: 11, want 10":      func(t *tally) { t.children.Buried++ },
		"children recycled: 8, want 9 to 10":                  func(t *tally) { t.recycled = 8 },
		"children that died: 1, want 0":                       func(t *tally) { t.died++ },
	} {
		spoiled := good()
		spoil(&spoiled)
		if err := spoiled.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
	}
}

func TestTheLastLinesOfATextAreWhole(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                   "",
		"one\n":              "one\n",
		"one\ntwo\n":         "one\ntwo\n",
		"one\ntwo\nthree\n":  "two\nthree\n",
		"one\ntwo\nunended":  "two\nunended",
		"\n\n\n":             "\n\n",
		"no line end at all": "no line end at all",
	} {
		if got := string(lastLines([]byte(text), 2)); got != want {
			t.Errorf("the last two lines of %q are %q, want %q", text, got, want)
		}
	}
}
