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
	running int           // jobs admitted that have not left
	alone   chan struct{} // a job runs alone, or is to: closed when the others have left; nil otherwise
	shared  chan struct{} // closed when that job has left
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

// admit lets one job start, exactly limit of them in all, and none beside a job that
// runs alone. With the last one the gate is shut; its consumer then announces the
// recycling and calls close. Whoever was admitted calls leave in the end.
func (g *gate) admit() (ok, last bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut || g.quiet || g.alone != nil {
		return false, false
	}
	g.started++
	g.running++
	g.shut = g.limit > 0 && g.started == uint64(g.limit)
	return true, g.shut
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	if g.alone != nil && g.running == 1 {
		close(g.alone)
	}
}

// isolate waits until the caller's job is the only one that was admitted, and has none
// admitted until share is called. It gives up when the gate is closed, when done is, or
// at once if another job runs alone already.
func (g *gate) isolate(done <-chan struct{}) (alone bool) {
	g.mu.Lock()
	if g.alone != nil {
		g.mu.Unlock()
		return false
	}
	others := make(chan struct{})
	g.alone, g.shared = others, make(chan struct{})
	if g.running == 1 {
		close(others)
	}
	g.mu.Unlock()
	select {
	case <-others:
		return true
	case <-g.stopped:
	case <-done:
	}
	g.share()
	return false
}

// share ends isolate.
func (g *gate) share() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.shared)
	g.alone, g.shared = nil, nil
}

// isolated returns what is closed when the job that runs alone has left; nil if none does.
func (g *gate) isolated() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shared
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
