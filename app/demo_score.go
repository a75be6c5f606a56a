package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/postburner/postburner/beanstalk"
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
			return fmt.Errorf("stopped with %d of %d jobs done or buried: %w", settled, demoJobs, err)
		}
		now := int(stats.TotalJobs) - stats.Jobs() + stats.Buried
		bar.advance(now-settled, now)
		if settled = now; settled == demoJobs {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("stopped with %d of %d jobs done or buried: %w", settled, demoJobs, ctx.Err())
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
	children := s.forked.Status().Total
	recycled := int(s.recycled.Load())
	if err := s.print(`done      %5d
retried   %5d
buried    %5d
recycled  %5d children, each after %d jobs, with exit code %d
speed     %5.0f jobs/s: %v each, %d at once, retries a second later
`, server.Deletes, children.Retried, server.Buried, recycled, demoLimit, ExitRecycled, demoJobs/took.Seconds(), demoWork, demoForks*demoThreads); err != nil {
		return err
	}
	// The children that were left at the end have not ended with 99; at most the limit each of what they started is not recycled.
	mostRecycled := demoExecutions / demoLimit
	var problems []error
	for _, n := range []struct {
		what        string
		got         int
		least, most int
	}{
		{"executions, as the handlers wrote", len(journal), demoExecutions, demoExecutions},
		{"successes, as the handlers wrote", strings.Count(string(journal), noteSucceeded), demoDone, demoDone},
		{"panics, as the handlers wrote", strings.Count(string(journal), notePanicked), demoPanic * (1 + demoRetries), demoPanic * (1 + demoRetries)},
		{"jobs put, as the server counted", int(server.TotalJobs), demoJobs, demoJobs},
		{"jobs deleted, as the server counted", int(server.Deletes), demoDone, demoDone},
		{"jobs left on the server", server.Jobs(), demoBuried, demoBuried},
		{"jobs buried on the server", server.Buried, demoBuried, demoBuried},
		{"jobs done, as the children said", int(children.Done), demoDone, demoDone},
		{"jobs retried, as the children said", int(children.Retried), demoRetried, demoRetried},
		{"jobs buried, as the children said", int(children.Buried), demoBuried, demoBuried},
		{"children recycled", recycled, mostRecycled - demoForks + 1, mostRecycled},
		{"children that died", int(s.died.Load()), 0, 0},
	} {
		if n.got < n.least || n.got > n.most {
			problems = append(problems, fmt.Errorf("  %s: %d, want %d to %d", n.what, n.got, n.least, n.most))
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("the numbers do not add up:\n%w", errors.Join(problems...))
	}
	return nil
}
