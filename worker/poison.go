package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/job"
)

// Suspect is a job that was running when a process died without having been asked to end.
type Suspect struct {
	BeanstalkID uint64
	Key         uint64 // as the Board was told
	Deaths      int    // of processes that were running it
	Alone       bool   // in one of them nothing else was running
}

const (
	// vigilance is how long consumers look at what the server counts of the jobs that they
	// reserve, and vigilantJobs of how many. A job that kills everything comes back to the
	// head of its tube each time, so it is among the first.
	vigilance    = time.Minute
	vigilantJobs = 100
)

// poisonGuard knows the suspects.
type poisonGuard struct {
	until atomic.Int64 // consumers are vigilant, Unix nanoseconds
	round atomic.Int64 // counts the times that vigilance began

	mu       sync.Mutex // guards what follows
	suspects map[[2]uint64]Suspect
}

// Suspect tells the pool of jobs that were running when some process died, and has its
// consumers look for others for a minute. A job whose process has died
// Options.PoisonDeaths-1 times is run alone, so that its next death tells it from those
// that merely ran beside another; at PoisonDeaths it is buried. It may be called at any time.
func (p *Pool) Suspect(all ...Suspect) {
	p.poison.mu.Lock()
	if p.poison.suspects == nil {
		p.poison.suspects = make(map[[2]uint64]Suspect)
	}
	for _, s := range all {
		p.poison.suspects[[2]uint64{s.BeanstalkID, s.Key}] = s
	}
	p.poison.mu.Unlock()
	p.poison.watch(time.Now())
}

// watch has the consumers look at what they reserve for a while.
func (g *poisonGuard) watch(now time.Time) {
	g.until.Store(now.Add(vigilance).UnixNano())
	g.round.Add(1)
}

func (g *poisonGuard) find(id, key uint64) Suspect {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.suspects[[2]uint64{id, key}]
}

// keyOf tells jobs apart that have had the same id on different servers.
func keyOf(e *job.Envelope, body []byte) uint64 {
	key := uint64(14695981039346656037) // FNV-1a
	add := func(c byte) { key = (key ^ uint64(c)) * 1099511628211 }
	if e.ID == "" {
		for _, c := range body {
			add(c)
		}
	}
	for i := range len(e.ID) {
		add(e.ID[i])
	}
	return key
}

// checkPoison decides about a job before it is run. settled says that it needs no
// handler any more.
func (c *consumer) checkPoison(x *execution) (settled bool, how precaution) {
	p := c.pool
	if p.opts.PoisonDeaths <= 0 {
		return false, none
	}
	s := p.poison.find(x.raw.ID, x.key)
	if s.Deaths >= p.opts.PoisonDeaths && s.Alone {
		c.buryPoison(x, fmt.Sprintf("poison: %d processes died while they were running it, and once it was running alone", s.Deaths))
		return true, none
	}
	if s.Deaths >= max(1, p.opts.PoisonDeaths-1) {
		how = isolated
	}
	if !c.isVigilant(x.began) {
		return false, how
	}
	stats, err := c.conn.StatsHeld(context.Background(), x.raw)
	if err != nil {
		c.reportLost(x, err)
		return true, none
	}
	// What is known of deaths has been judged above.
	if unexplained(stats)-s.Deaths < p.opts.PoisonReserves {
		return false, how
	}
	if marks := stats.Buries - stats.Kicks; marks >= p.opts.PoisonDeaths {
		reason := fmt.Sprintf("poison: it was run alone %d times, and each time its process died; it was reserved %d times in all", marks, stats.Reserves)
		c.carryOut(x, decision{action: job.ActionBury, reason: reason}, stats, nil)
		return true, none
	}
	x.priority = stats.Priority
	return false, marked
}

// precaution is how a job is run that may be poison.
type precaution int

const (
	none     precaution = iota
	isolated            // alone
	marked              // alone, which the server is to remember
)

// unexplained counts the reserves before this one that ended with neither a release, nor
// a timeout, nor a burial: the connection was closed. A single death can be many of
// them, since the server hands the job from one dying connection to the next.
func unexplained(s beanstalk.JobStats) int {
	return s.Reserves - 1 - s.Releases - s.Timeouts - s.Buries
}

// takePrecaution makes ready for a job that may be poison. If it returns false the job is settled.
func (c *consumer) takePrecaution(x *execution, how precaution) bool {
	if how == none {
		return true
	}
	x.job.Log().Warn("a job that may have killed its process waits until it is alone; meanwhile this process takes no others")
	if !c.pool.gate.isolate(x.ctx.Done()) {
		c.giveUp(x)
		return false
	}
	x.job.Log().Warn("a job that may have killed its process is run alone")
	if how == marked {
		x.marked = true
		if err := c.conn.Mark(context.Background(), x.raw, x.priority); err != nil {
			c.pool.gate.share()
			x.end(fmt.Errorf("%w: %w", job.ErrLeaseLost, err))
			c.giveUp(x)
			return false
		}
	}
	return true
}

func (c *consumer) isVigilant(now time.Time) bool {
	g := &c.pool.poison
	if c.pool.opts.PoisonReserves == 0 || now.UnixNano() > g.until.Load() {
		return false
	}
	if round := g.round.Load(); round != c.vigilantRound {
		c.vigilantRound, c.vigilantJobs = round, 0
	}
	c.vigilantJobs++
	return c.vigilantJobs <= vigilantJobs
}

// kickMarked makes a marked job ready again that a restart of the server has left buried.
func (c *consumer) kickMarked(x *execution) {
	if !x.marked {
		return
	}
	c.conn.Disconnect() // whatever is left of it
	ctx, cancel := context.WithTimeout(context.Background(), recoverFor)
	defer cancel()
	body, err := c.conn.Peek(ctx, x.raw.ID)
	if err == nil && bytes.Equal(body, x.raw.Body) {
		err = c.conn.KickJob(ctx, x.raw.ID)
	}
	if err != nil && !errors.Is(err, beanstalk.ErrNotFound) { // not found: done, or ready
		x.job.Log().Error("the job may be left buried, since it was being run alone: kick it", "error", err)
	}
}

func (c *consumer) buryPoison(x *execution, reason string) {
	stats, err := c.conn.StatsHeld(context.Background(), x.raw)
	if err != nil {
		c.reportLost(x, err)
		return
	}
	c.carryOut(x, decision{action: job.ActionBury, reason: reason}, stats, nil)
}
