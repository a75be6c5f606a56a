package broker

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// locked runs f with the engine to itself, counts the command, and answers what f returns.
func (s *session) locked(stat string, f func(e *engine) (reply string)) {
	s.reply(func() string {
		s.engine.mu.Lock()
		defer s.engine.mu.Unlock()
		if stat != "" {
			s.engine.counts[stat]++
		}
		return f(s.engine)
	}())
}

func seconds(n uint64) time.Duration { return time.Duration(n) * time.Second }

func (s *session) put(args string) {
	fields, ok := numbersWithRest(args)
	if !ok {
		s.reply(replyBadFormat)
		return
	}
	size := int(fields.size)
	if fields.size > uint64(s.engine.maxJobSize) {
		s.locked("cmd-put", func(*engine) string { return "" })
		if _, err := s.r.Discard(size + 2); err != nil {
			s.over = true
			return
		}
		s.reply(replyTooBig)
		return
	}
	if fields.rest != "" {
		s.reply(replyBadFormat)
		return
	}
	id := s.engine.nextID() // taken before the body has come, as beanstalkd does, and not given back
	body, ok := s.readBody(size)
	if !ok {
		s.over = true
		return
	}
	s.locked("cmd-put", func(e *engine) string {
		if !s.client.producer {
			s.client.producer = true
			e.counts["current-producers"]++
		}
		switch {
		case body[size] != '\r' || body[size+1] != '\n':
			return replyExpectedCRLF
		case e.faults.Draining:
			return replyDraining
		case e.faults.OutOfMemory:
			return replyOutOfMemory
		}
		j := &job{
			id: id, pri: uint32(fields.pri), delay: seconds(fields.delay), ttr: seconds(max(fields.ttr, 1)),
			body: body[:size], tube: s.client.use, created: time.Now(),
		}
		e.jobs[j.id] = j
		j.tube.total++
		e.counts["total-jobs"]++
		e.settle(j, j.delay)
		return "INSERTED " + strconv.FormatUint(j.id, 10) + "\r\n"
	})
}

func (e *engine) nextID() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lastID++
	return e.lastID
}

// putFields are the arguments of put.
type putFields struct {
	pri, delay, ttr, size uint64
	rest                  string
}

func numbersWithRest(args string) (f putFields, ok bool) {
	for _, field := range []*uint64{&f.pri, &f.delay, &f.ttr, &f.size} {
		if *field, args, ok = number(args, 32); !ok {
			return f, false
		}
	}
	f.rest = args
	return f, true
}

// settle makes a job ready, now or after a delay.
func (e *engine) settle(j *job, delay time.Duration) {
	if delay > 0 {
		e.enqueue(j, delayed, delay)
	} else {
		e.enqueue(j, ready, 0)
	}
	e.serve()
}

// one reads the id that is the only argument.
func (s *session) one(args string) (id uint64, ok bool) {
	fields, ok := numbers(args, 64)
	if !ok {
		s.reply(replyBadFormat)
		return 0, false
	}
	return fields[0], true
}

// own returns the job of an id if this client holds it.
func (s *session) own(e *engine, id uint64) *job {
	if j := e.jobs[id]; j != nil && j.state == reserved && j.holder == s.client {
		return j
	}
	return nil
}

func (s *session) delete(args string) {
	id, ok := s.one(args)
	if !ok {
		return
	}
	s.locked("cmd-delete", func(e *engine) string {
		j := e.jobs[id]
		if j == nil || j.state == reserved && j.holder != s.client {
			return replyNotFound
		}
		e.take(j)
		delete(e.jobs, id)
		j.tube.deletes++
		e.vanish(j.tube)
		e.schedule()
		return "DELETED\r\n"
	})
}

func (s *session) release(args string) {
	fields, ok := numbers(args, 64, 32, 32)
	if !ok {
		s.reply(replyBadFormat)
		return
	}
	s.locked("cmd-release", func(e *engine) string {
		j := s.own(e, fields[0])
		if j == nil {
			return replyNotFound
		}
		if e.faults.OutOfMemory && fields[2] > 0 {
			e.orphan(j)
			return replyOutOfMemory
		}
		e.take(j)
		j.pri, j.delay = uint32(fields[1]), seconds(fields[2])
		j.releases++
		e.settle(j, j.delay)
		return "RELEASED\r\n"
	})
}

// orphan leaves a job reserved by nobody, as beanstalkd does when it cannot write a job to its binlog.
func (e *engine) orphan(j *job) {
	e.leases.remove(j)
	delete(j.holder.held, j)
	j.holder = e.nobody
	j.deadline = time.Now().Add(math.MaxInt64)
	e.nobody.held[j] = struct{}{}
	e.leases.add(j)
}

func (s *session) bury(args string) {
	fields, ok := numbers(args, 64, 32)
	if !ok {
		s.reply(replyBadFormat)
		return
	}
	s.locked("cmd-bury", func(e *engine) string {
		j := s.own(e, fields[0])
		if j == nil {
			return replyNotFound
		}
		if e.faults.OutOfMemory {
			e.orphan(j)
			return replyInternal
		}
		e.take(j)
		j.pri = uint32(fields[1])
		j.buries++
		e.enqueue(j, buried, 0)
		e.schedule()
		return "BURIED\r\n"
	})
}

func (s *session) touch(args string) {
	id, ok := s.one(args)
	if !ok {
		return
	}
	s.locked("cmd-touch", func(e *engine) string {
		j := s.own(e, id)
		if j == nil {
			return replyNotFound
		}
		e.leases.remove(j)
		j.deadline = time.Now().Add(j.ttr)
		e.leases.add(j)
		e.schedule()
		return "TOUCHED\r\n"
	})
}

func (s *session) kick(args string) {
	// beanstalkd reads the bound with strtoul: what follows is ignored, and a minus sign is a very large number.
	bound, _, ok := number(strings.TrimPrefix(strings.TrimLeft(args, " "), "-"), 64)
	if !ok {
		s.reply(replyBadFormat)
		return
	}
	if strings.HasPrefix(strings.TrimLeft(args, " "), "-") {
		bound = math.MaxUint32
	}
	s.locked("cmd-kick", func(e *engine) string {
		kicked := 0
		t := s.client.use
		if len(t.buried) > 0 {
			for kicked = 0; uint64(kicked) < bound && len(t.buried) > 0; kicked++ {
				e.kick(t.buried[0])
			}
		} else {
			for _, j := range e.delayedOf(t) {
				if uint64(kicked) == bound {
					break
				}
				e.kick(j)
				kicked++
			}
		}
		e.serve()
		return "KICKED " + strconv.Itoa(kicked) + "\r\n"
	})
}

func (e *engine) kick(j *job) {
	e.take(j)
	j.kicks++
	e.enqueue(j, ready, 0)
}

// delayedOf returns the delayed jobs of a tube, the soonest first.
func (e *engine) delayedOf(t *tube) []*job {
	var jobs []*job
	for _, j := range e.delays.jobs {
		if j.tube == t {
			jobs = append(jobs, j)
		}
	}
	slices.SortFunc(jobs, func(a, b *job) int {
		if byDeadline(a, b) {
			return -1
		}
		return 1
	})
	return jobs
}

func (s *session) kickJob(args string) {
	id, ok := s.one(args)
	if !ok {
		return
	}
	s.locked("", func(e *engine) string {
		j := e.jobs[id]
		if j == nil || j.state != buried && j.state != delayed {
			return replyNotFound
		}
		e.kick(j)
		e.serve()
		return "KICKED\r\n"
	})
}
