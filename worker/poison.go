package worker

import (
	"context"
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
// handler any more, isolate that it is to run alone.
func (c *consumer) checkPoison(x *execution) (settled, isolate bool) {
	p := c.pool
	if deaths := p.opts.PoisonDeaths; deaths > 0 {
		s := p.poison.find(x.raw.ID, x.key)
		if s.Deaths >= deaths && s.Alone {
			c.buryPoison(x, fmt.Sprintf("poison: %d processes died while they were running it, and once it was running alone", s.Deaths))
			return true, false
		}
		isolate = s.Deaths >= max(1, deaths-1)
	}
	if !c.isVigilant(x.began) {
		return false, isolate
	}
	stats, err := c.conn.StatsJob(context.Background(), x.raw.ID)
	if err != nil {
		c.reportLost(x, err)
		return true, false
	}
	if n := unexplained(stats); n >= p.opts.PoisonReserves {
		reason := fmt.Sprintf("poison: it was reserved %d times with nothing to show for it, as when its process dies", n)
		c.carryOut(x, decision{action: job.ActionBury, reason: reason}, stats, nil)
		return true, false
	}
	return false, isolate
}

// unexplained counts the reserves before this one that ended with neither a release, nor
// a timeout, nor a burial: the connection was closed.
func unexplained(s beanstalk.JobStats) int {
	return s.Reserves - 1 - s.Releases - s.Timeouts - s.Buries
}

func (c *consumer) isVigilant(now time.Time) bool {
	g := &c.pool.poison
	if c.pool.opts.PoisonReserves <= 0 || now.UnixNano() > g.until.Load() {
		return false
	}
	if round := g.round.Load(); round != c.vigilantRound {
		c.vigilantRound, c.vigilantJobs = round, 0
	}
	c.vigilantJobs++
	return c.vigilantJobs <= vigilantJobs
}

func (c *consumer) buryPoison(x *execution, reason string) {
	stats, err := c.conn.StatsJob(context.Background(), x.raw.ID)
	if err != nil {
		c.reportLost(x, err)
		return
	}
	c.carryOut(x, decision{action: job.ActionBury, reason: reason}, stats, nil)
}
