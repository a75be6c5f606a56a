package worker

import "sync"

// gate decides whether a consumer may look for a job and whether a job may start.
type gate struct {
	limit   int           // jobs to admit; 0: any number
	stopped chan struct{} // closed when no further job starts, for good

	mu      sync.Mutex // guards what follows
	shut    bool       // no further job starts
	quiet   bool       // nor does one while the pool is quiet
	started uint64
}

func newGate(limit int) *gate {
	return &gate{limit: limit, stopped: make(chan struct{})}
}

// isOpen reports whether a consumer may look for a job.
func (g *gate) isOpen() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.shut && !g.quiet
}

// admit lets one job start, exactly limit of them in all. With the last one the gate is
// shut; its consumer then announces the recycling and calls close.
func (g *gate) admit() (ok, last bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut || g.quiet {
		return false, false
	}
	g.started++
	g.shut = g.limit > 0 && g.started == uint64(g.limit)
	return true, g.shut
}

// close lets no further job start. It may be called more than once.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
	select {
	case <-g.stopped:
	default:
		close(g.stopped)
	}
}

func (g *gate) setQuiet() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.quiet = true
}

// isClosed reports whether close was called.
func (g *gate) isClosed() bool {
	select {
	case <-g.stopped:
		return true
	default:
		return false
	}
}

func (g *gate) isQuiet() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.quiet
}

// count is how many jobs were admitted.
func (g *gate) count() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.started
}
