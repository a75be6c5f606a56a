package broker

import (
	"container/heap"
	"time"
)

// state is where a job is.
type state int

const (
	ready state = iota
	delayed
	reserved
	buried
)

func (s state) String() string { return [...]string{"ready", "delayed", "reserved", "buried"}[s] }

// job is one job. It is in exactly one queue, which its state tells.
type job struct {
	id       uint64
	pri      uint32
	delay    time.Duration
	ttr      time.Duration
	body     []byte
	tube     *tube
	state    state
	created  time.Time
	deadline time.Time // of the delay or of the lease
	holder   *client
	at       int // in its heap

	reserves, timeouts, releases, buries, kicks int
}

// urgentBelow is the priority below which a job counts as urgent in the statistics.
const urgentBelow = 1024

// queue is a heap of jobs that know their place in it.
type queue struct {
	jobs []*job
	less func(a, b *job) bool
}

func byPriority(a, b *job) bool { return a.pri < b.pri || a.pri == b.pri && a.id < b.id }

func byDeadline(a, b *job) bool {
	return a.deadline.Before(b.deadline) || a.deadline.Equal(b.deadline) && a.id < b.id
}

// The methods of heap.Interface.

func (q *queue) Len() int           { return len(q.jobs) }
func (q *queue) Less(i, k int) bool { return q.less(q.jobs[i], q.jobs[k]) }

func (q *queue) Swap(i, k int) {
	q.jobs[i], q.jobs[k] = q.jobs[k], q.jobs[i]
	q.jobs[i].at, q.jobs[k].at = i, k
}

func (q *queue) Push(x any) {
	j := x.(*job) //nolint:forcetypeassert // only jobs are pushed
	j.at = len(q.jobs)
	q.jobs = append(q.jobs, j)
}

func (q *queue) Pop() any {
	last := q.jobs[len(q.jobs)-1]
	q.jobs[len(q.jobs)-1] = nil
	q.jobs = q.jobs[:len(q.jobs)-1]
	return last
}

func (q *queue) add(j *job)    { heap.Push(q, j) }
func (q *queue) remove(j *job) { heap.Remove(q, j.at) }

// first returns the job that comes first, nil if there is none.
func (q *queue) first() *job {
	if len(q.jobs) == 0 {
		return nil
	}
	return q.jobs[0]
}
