package beanstalk

import (
	"cmp"
	"context"
	"fmt"
	"time"

	gobeanstalk "github.com/beanstalkd/go-beanstalk"
)

// Delete deletes a job that this connection holds.
func (c *Conn) Delete(ctx context.Context, j *Job) error {
	if err := c.acquire(ctx); err != nil {
		return c.failed(deleteOp(j.ID), err)
	}
	defer c.release()
	if !c.holds(j) {
		return c.failed(deleteOp(j.ID), ErrJobLost)
	}
	return c.deleteOn(ctx, c.link, j)
}

func (c *Conn) deleteOn(ctx context.Context, l *link, j *Job) error {
	return c.on(ctx, l, deleteOp(j.ID), func(l *link) error { return l.library.Delete(j.ID) })
}

// Release gives a held job back with a new priority, to be ready after delay, which is
// rounded up to whole seconds. A delay of at least a second is durable where the server
// has a binlog; without one the server forgets it in a restart.
func (c *Conn) Release(ctx context.Context, j *Job, pri uint32, delay time.Duration) error {
	return c.runHeld(ctx, j, fmt.Sprint("release job ", j.ID), func(l *link) error {
		return l.library.Release(j.ID, pri, wait(delay))
	})
}

// Bury sets a held job aside with a new priority until someone kicks or deletes it.
func (c *Conn) Bury(ctx context.Context, j *Job, pri uint32) error {
	return c.runHeld(ctx, j, fmt.Sprint("bury job ", j.ID), func(l *link) error {
		return l.library.Bury(j.ID, pri)
	})
}

// HandBack makes a held job ready again at once, under the priority. It buries and kicks the
// job in one write: to the server that is neither an attempt, as a release would be, nor
// a reserve that nothing explains, as a closed connection would leave behind.
func (c *Conn) HandBack(ctx context.Context, j *Job, pri uint32) error {
	return c.runHeld(ctx, j, fmt.Sprint("hand back job ", j.ID), func(l *link) error {
		l.out = appendField(append(l.out[:0], "bury"...), j.ID)
		l.out = appendField(l.out, uint64(pri))
		l.out = appendField(append(l.out, "\r\nkick-job"...), j.ID)
		if _, err := l.Write(append(l.out, "\r\n"...)); err != nil {
			return err
		}
		buried, err := l.readReply("BURIED")
		if err != nil {
			return err
		}
		kicked, err := l.readReply("KICKED")
		if err != nil {
			return err
		}
		return cmp.Or(buried, kicked)
	})
}

// Mark leaves a burial behind on a held job, which stays held: it buries the job and
// reserves it again in one write. Unlike all else that is done to a job, it lets the count
// of its burials outgrow that of its kicks. A server with a binlog restarts with the job buried.
func (c *Conn) Mark(ctx context.Context, j *Job, pri uint32) error {
	return c.runHeld(ctx, j, fmt.Sprint("mark job ", j.ID), func(l *link) error {
		l.out = appendField(append(l.out[:0], "bury"...), j.ID)
		l.out = appendField(l.out, uint64(pri))
		l.out = appendField(append(l.out, "\r\nreserve-job"...), j.ID)
		if _, err := l.Write(append(l.out, "\r\n"...)); err != nil {
			return err
		}
		buried, err := l.readReply("BURIED")
		if err != nil {
			return err
		}
		_, err = l.readJob()
		return cmp.Or(buried, err)
	})
}

// Touch starts the TTR of a held job anew.
func (c *Conn) Touch(ctx context.Context, j *Job) error {
	return c.runHeld(ctx, j, fmt.Sprint("touch job ", j.ID), func(l *link) error {
		return l.library.Touch(j.ID)
	})
}

// Holds reports whether the connection that reserved the job is up, as far as can be
// known without asking the server: that it has been closed by the other end is seen at once, a network that is
// silent is not. It waits for nothing and may be called while a command runs.
func (c *Conn) Holds(j *Job) bool {
	c.mu.Lock()
	live := c.live
	c.mu.Unlock()
	return live != nil && live.epoch == j.epoch && !live.gone.Load() && !hungUp(live.conn)
}

// DeleteID deletes a job that is ready, delayed or buried; one that is reserved, by
// whomever, is ErrNotFound.
func (c *Conn) DeleteID(ctx context.Context, id uint64) error {
	return c.run(ctx, deleteOp(id), func(l *link) error { return l.library.Delete(id) })
}

// KickJob makes a delayed or buried job ready.
func (c *Conn) KickJob(ctx context.Context, id uint64) error {
	return c.run(ctx, fmt.Sprint("kick job ", id), func(l *link) error { return l.library.KickJob(id) })
}

// ReserveJob reserves a job that is ready, delayed or buried (beanstalkd 1.12 and later).
func (c *Conn) ReserveJob(ctx context.Context, id uint64) (*Job, error) {
	var job *Job
	err := c.run(ctx, fmt.Sprint("reserve job ", id), func(l *link) error {
		body, err := l.library.ReserveJob(id)
		job = &Job{ID: id, Body: body, epoch: l.epoch}
		return err
	})
	if err != nil {
		return nil, err
	}
	return job, nil
}

// Peek returns the body of a job in whatever state.
func (c *Conn) Peek(ctx context.Context, id uint64) (body []byte, err error) {
	err = c.run(ctx, fmt.Sprint("peek job ", id), func(l *link) error {
		body, err = l.library.Peek(id)
		return err
	})
	return body, err
}

// PeekReady returns the job that is next in the tube.
func (c *Conn) PeekReady(ctx context.Context, tube string) (id uint64, body []byte, err error) {
	return c.peek(ctx, "peek-ready", tube, (*gobeanstalk.Tube).PeekReady)
}

// PeekDelayed returns the delayed job that is ready soonest.
func (c *Conn) PeekDelayed(ctx context.Context, tube string) (id uint64, body []byte, err error) {
	return c.peek(ctx, "peek-delayed", tube, (*gobeanstalk.Tube).PeekDelayed)
}

// PeekBuried returns the job that Kick takes first.
func (c *Conn) PeekBuried(ctx context.Context, tube string) (id uint64, body []byte, err error) {
	return c.peek(ctx, "peek-buried", tube, (*gobeanstalk.Tube).PeekBuried)
}

func (c *Conn) peek(ctx context.Context, op, tube string, f func(*gobeanstalk.Tube) (uint64, []byte, error)) (id uint64, body []byte, err error) {
	err = c.inTube(ctx, op, tube, func(t *gobeanstalk.Tube) error {
		id, body, err = f(t)
		return err
	})
	return id, body, err
}

// Kick makes up to bound jobs of the tube ready: buried ones, or if there are none, delayed ones.
func (c *Conn) Kick(ctx context.Context, tube string, bound int) (n int, err error) {
	err = c.inTube(ctx, "kick", tube, func(t *gobeanstalk.Tube) error {
		n, err = t.Kick(bound)
		return err
	})
	return n, err
}

// inTube is run for a command that works on the tube in use.
func (c *Conn) inTube(ctx context.Context, op, tube string, f func(*gobeanstalk.Tube) error) error {
	op = fmt.Sprintf("%s in tube %s", op, tube)
	if err := CheckTube(tube); err != nil {
		return c.failed(op, notSent(err))
	}
	return c.run(ctx, op, func(l *link) error {
		// go-beanstalk sends `use` only if the tube differs from the one it used last; puts use tubes behind its back.
		if l.used != l.libUsed {
			if _, err := l.Write([]byte("use " + l.libUsed + "\r\n")); err != nil {
				return err
			}
			reply, err := l.readReply("USING " + l.libUsed)
			if err := cmp.Or(err, reply); err != nil {
				return err
			}
		}
		l.used, l.libUsed = tube, tube
		return f(gobeanstalk.NewTube(l.library, tube))
	})
}

// PauseTube keeps every job of the tube from being reserved for d, in whole seconds.
func (c *Conn) PauseTube(ctx context.Context, tube string, d time.Duration) error {
	op := "pause tube " + tube
	if err := CheckTube(tube); err != nil {
		return c.failed(op, notSent(err))
	}
	return c.run(ctx, op, func(l *link) error { return gobeanstalk.NewTube(l.library, tube).Pause(wait(d)) })
}

// ListTubes returns the names of the tubes that exist now.
func (c *Conn) ListTubes(ctx context.Context) (tubes []string, err error) {
	err = c.run(ctx, "list the tubes", func(l *link) error {
		tubes, err = l.library.ListTubes()
		return err
	})
	for i := range tubes {
		tubes[i] = unquote(tubes[i])
	}
	return tubes, err
}
