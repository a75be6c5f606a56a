package worker

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/postburner/postburner/beanstalk"
)

// recoverFor bounds how long a lost deletion is tried again.
const recoverFor = 5 * time.Second

// serverID is the id of the server process that each connection leads to. Job ids
// mean something within one such process only.
type serverID struct {
	connection uint64
	id         string // "" if it could not be learned
}

// learn asks once for each connection, before anything is lost on it.
func (s *serverID) learn(conn *beanstalk.Conn, j *beanstalk.Job) {
	if s.connection == j.Connection() {
		return
	}
	s.connection, s.id = j.Connection(), ""
	if stats, err := conn.StatsHolding(context.Background(), j); err == nil {
		s.id = stats.ID
	}
}

// deleteElsewhere deletes a job that is done after its connection broke: over a new one, if
// that leads to the same server process and the job there is the same. The job is ready
// again by then, unless another worker has been quicker.
func (c *consumer) deleteElsewhere(x *execution) bool {
	if c.serverID.id == "" || c.serverID.connection != x.raw.Connection() {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), recoverFor)
	defer cancel()
	stats, err := c.conn.Stats(ctx)
	if err != nil || stats.ID != c.serverID.id {
		return false
	}
	body, err := c.conn.Peek(ctx, x.raw.ID)
	if err != nil || !bytes.Equal(body, x.raw.Body) {
		return false
	}
	return c.conn.DeleteID(ctx, x.raw.ID) == nil
}

// unknownCapacity is how many jobs whose deletion is unknown are remembered.
const unknownCapacity = 10_000

// unknownDeletes remembers jobs that are done but may still be on the server, the
// latest of them. If exactly such a job comes back to this process, it is deleted, not run again.
type unknownDeletes struct {
	mu   sync.Mutex
	jobs map[doneJob]struct{}
	ring []doneJob // in the order in which they came, to forget the oldest
	next int
}

type doneJob struct {
	beanstalkID uint64
	jobID       string
}

func (u *unknownDeletes) remember(beanstalkID uint64, jobID string) {
	if jobID == "" {
		return // without an identity of its own it cannot be told from another job with that id
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	key := doneJob{beanstalkID, jobID}
	if u.jobs == nil {
		u.jobs = make(map[doneJob]struct{})
	}
	if len(u.ring) < unknownCapacity {
		u.ring = append(u.ring, key)
	} else {
		delete(u.jobs, u.ring[u.next])
		u.ring[u.next] = key
		u.next = (u.next + 1) % unknownCapacity
	}
	u.jobs[key] = struct{}{}
}

// claim reports whether the job is remembered, and forgets it.
func (u *unknownDeletes) claim(beanstalkID uint64, jobID string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.jobs) == 0 {
		return false
	}
	key := doneJob{beanstalkID, jobID}
	_, ok := u.jobs[key]
	delete(u.jobs, key)
	return ok
}
