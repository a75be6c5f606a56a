package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/worker/swarm"
)

// scoreboard compares three independent accounts of a demonstration: what the handlers
// wrote into the journal, what the server counted, and what the children told their parent.
type scoreboard struct {
	*demonstration
	server *beanstalk.Conn
	tube   string
}

func newScoreboard(d *demonstration) (*scoreboard, error) {
	server, err := beanstalk.New(d.beanstalkOptions(d.config))
	if err != nil {
		return nil, err
	}
	return &scoreboard{d, server, d.config.Tube(d.config.DefaultQueue)}, nil
}

func (s *scoreboard) close() { _ = s.server.Close() } // always nil

// watch shows how far it is until every job is deleted or buried.
func (s *scoreboard) watch(ctx context.Context) error {
	bar := newProgress(s.Stderr, "done or buried", demoJobs)
	defer bar.end()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for settled := 0; ; {
		stats, err := s.server.StatsTube(ctx, s.tube)
		if err != nil {
			return fmt.Errorf("with %d of %d jobs done or buried: %w", settled, demoJobs, err)
		}
		now := int(stats.TotalJobs) - stats.Jobs() + stats.Buried
		bar.advance(now-settled, now)
		if settled = now; settled == demoJobs {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("with %d of %d jobs done or buried: %w", settled, demoJobs, context.Cause(ctx))
		}
	}
}

// sum prints the summary; its error names every number that is not what it has to be.
func (s *scoreboard) sum(ctx context.Context, took time.Duration) error {
	journal, err := os.ReadFile(s.journal)
	if err != nil {
		return err
	}
	server, err := s.server.StatsTube(ctx, s.tube)
	if err != nil {
		return err
	}
	t := tally{
		executed: len(journal), succeeded: strings.Count(string(journal), noteSucceeded), panicked: strings.Count(string(journal), notePanicked),
		server: server, children: s.forked.Status().Total, recycled: int(s.recycled.Load()), died: int(s.died.Load()),
	}
	err = s.print(`done      %5d
retried   %5d
buried    %5d
recycled  %5d children, each after %d jobs, with exit code %d
speed     %5.0f jobs/s: %v each, %d at once, retries a second later
`, t.server.Deletes, t.children.Retried, t.server.Buried, t.recycled, demoLimit, ExitRecycled, demoJobs/took.Seconds(), demoWork, demoForks*demoThreads)
	return errors.Join(err, t.check())
}

// tally is the three accounts.
type tally struct {
	executed, succeeded, panicked int // as the handlers wrote
	server                        beanstalk.TubeStats
	children                      swarm.Heartbeat // of all children there were
	recycled, died                int             // of them
}

func (t tally) check() error {
	// Up to `limit` executions belong to each child that was still running at the end;
	// those children did not exit with 99.
	mostRecycled := demoExecutions / demoLimit
	var problems []error
	for _, n := range []struct {
		what        string
		got         int
		least, most int
	}{
		{"executions, as the handlers wrote", t.executed, demoExecutions, demoExecutions},
		{"successes, as the handlers wrote", t.succeeded, demoDone, demoDone},
		{"panics, as the handlers wrote", t.panicked, demoPanic * (1 + demoRetries), demoPanic * (1 + demoRetries)},
		{"jobs put, as the server counted", int(t.server.TotalJobs), demoJobs, demoJobs},
		{"jobs deleted, as the server counted", int(t.server.Deletes), demoDone, demoDone},
		{"jobs left on the server", t.server.Jobs(), demoBuried, demoBuried},
		{"jobs buried on the server", t.server.Buried, demoBuried, demoBuried},
		{"jobs started, as the children said", int(t.children.Started), demoExecutions, demoExecutions},
		{"jobs done, as the children said", int(t.children.Done), demoDone, demoDone},
		{"jobs retried, as the children said", int(t.children.Retried), demoRetried, demoRetried},
		{"jobs buried, as the children said", int(t.children.Buried), demoBuried, demoBuried},
		{"children recycled", t.recycled, mostRecycled - demoForks + 1, mostRecycled},
		{"children that died", t.died, 0, 0},
	} {
		switch {
		case n.got >= n.least && n.got <= n.most:
		case n.least == n.most:
			problems = append(problems, fmt.Errorf("  %s: %d, want %d", n.what, n.got, n.most))
		default:
			problems = append(problems, fmt.Errorf("  %s: %d, want %d to %d", n.what, n.got, n.least, n.most))
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("the numbers do not add up:\n%w", errors.Join(problems...))
	}
	return nil
}
