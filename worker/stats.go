package worker

import "sync/atomic"

// counters are what Stats reports, since the start.
type counters struct {
	done, retried, discarded, buried, lost, interrupted, stuck, possibleDuplicates atomic.Uint64
}

// Stats is a snapshot of a pool. Counters are since its start.
type Stats struct {
	Threads   int // consumers
	Connected int // of them, to the server
	Busy      int // of them, with a job
	Quiet     bool
	Isolating bool // a job runs alone, or waits to: see Pool.Suspect

	Started uint64 // handlers called, or to be called at once

	// What came of the jobs that were reserved; each is in one of these once it is settled.
	Done        uint64 // the handler returned nil, and the job is deleted
	Retried     uint64 // released for another attempt
	Discarded   uint64 // deleted without having succeeded
	Buried      uint64
	Lost        uint64 // no longer this worker's before it was settled; it may run again
	Interrupted uint64 // handed back with no attempt counted, at a stop or while the server could not store a failure

	Stuck              uint64 // handlers that ignored their ended context; their jobs are in another counter as well
	PossibleDuplicates uint64 // done, but the deletion is unknown; they are in Lost as well
}

// Stats returns a snapshot. It may be called at any time, from any goroutine.
func (p *Pool) Stats() Stats {
	s := Stats{
		Threads: len(p.consumers), Quiet: p.gate.isQuiet(), Isolating: p.gate.isolated() != nil, Started: p.gate.count(),
		Done: p.counts.done.Load(), Retried: p.counts.retried.Load(), Discarded: p.counts.discarded.Load(),
		Buried: p.counts.buried.Load(), Lost: p.counts.lost.Load(), Interrupted: p.counts.interrupted.Load(),
		Stuck: p.counts.stuck.Load(), PossibleDuplicates: p.counts.possibleDuplicates.Load(),
	}
	for _, c := range p.consumers {
		if c.conn.Connected() {
			s.Connected++
		}
		if c.current.Load() != nil {
			s.Busy++
		}
	}
	return s
}
