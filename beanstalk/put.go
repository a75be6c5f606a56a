package beanstalk

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"time"
)

// Put is what a put needs.
type Put struct {
	Tube     string
	Body     []byte
	Priority uint32        // 0 is first
	Delay    time.Duration // rounded up to whole seconds
	TTR      time.Duration // rounded up to whole seconds; under one second is refused
}

// PutResult is the outcome of one put of PutMany.
type PutResult struct {
	ID  uint64
	Err error // as of Conn.Put
}

// Put puts one job and returns its id. Beside what any command answers: ErrDraining,
// ErrJobTooBig, ErrOutOfMemory, and ErrBuried together with the id. ErrUnknownOutcome
// says that the job may be there or not; ErrNotSent that it is not.
func (c *Conn) Put(ctx context.Context, p Put) (uint64, error) {
	result := c.PutMany(ctx, []Put{p})[0]
	return result.ID, result.Err
}

// The server answers one command after another, so it stops reading when its replies
// are not read. These bounds on what is unanswered keep the replies within the
// smallest socket buffers.
const (
	windowPuts  = 1024
	windowBytes = 64 << 10
)

// PutMany pipelines the puts and returns one result each, in their order. A put that is
// invalid or refused does not keep the others back; after a lost connection the ones
// that were sent have ErrUnknownOutcome, the rest ErrNotSent.
func (c *Conn) PutMany(ctx context.Context, puts []Put) []PutResult {
	results := make([]PutResult, len(puts))
	valid := make([]int, 0, len(puts))
	for i, p := range puts {
		if err := p.check(); err != nil {
			results[i].Err = c.failed("put", fmt.Errorf("%w: %w", ErrNotSent, err))
			continue
		}
		valid = append(valid, i)
	}
	if err := c.putAll(ctx, puts, valid, results); err != nil {
		for _, i := range valid {
			if results[i] == (PutResult{}) {
				results[i].Err = c.failed(putOp(puts[i]), err)
			}
		}
	}
	return results
}

func putOp(p Put) string { return fmt.Sprintf("put %d bytes into %s", len(p.Body), p.Tube) }

func (p Put) check() error {
	if err := CheckTube(p.Tube); err != nil {
		return err
	}
	if p.TTR < time.Second {
		return fmt.Errorf("a TTR of %v: the server keeps whole seconds, at least one", p.TTR)
	}
	for name, d := range map[string]time.Duration{"TTR": p.TTR, "delay": p.Delay} {
		if d < 0 || wait(d)/time.Second > math.MaxUint32 {
			return fmt.Errorf("a %s of %v is out of range", name, d)
		}
	}
	return nil
}

// putAll sends the valid puts and fills in their results. What it returns is the fate
// of those that were never sent.
func (c *Conn) putAll(ctx context.Context, puts []Put, valid []int, results []PutResult) error {
	if len(valid) == 0 {
		return nil
	}
	if err := c.acquire(ctx); err != nil {
		return err
	}
	defer c.release()
	l, err := c.connect(ctx, false)
	if err != nil {
		return err
	}
	stop := watch(ctx, l)
	defer stop()
	// Two windows are under way at a time: one is answered while the next is written.
	var unanswered []int
	for len(valid) > 0 || len(unanswered) > 0 {
		n := l.encodeWindow(puts, valid)
		window := valid[:n]
		valid = valid[n:]
		err := l.begin(c.opts.ReplyTimeout)
		if err == nil && n > 0 {
			_, err = l.Write(l.out)
		}
		if err != nil {
			if l.sent == 0 && len(unanswered) == 0 {
				return c.lose(ctx, err, false)
			}
			// Nobody can say how much of the window the server has read.
			return c.lost(ctx, err, puts, slices.Concat(unanswered, window), results)
		}
		for k, i := range unanswered {
			if err := l.readPut(&results[i]); err != nil {
				return c.lost(ctx, err, puts, slices.Concat(unanswered[k:], window), results)
			}
			if results[i].Err != nil {
				results[i].Err = c.failed(putOp(puts[i]), results[i].Err)
			}
		}
		unanswered = window
	}
	c.failures = 0
	return nil
}

// encodeWindow writes the next puts into l.out, with `use` where the tube changes, and returns how many.
func (l *link) encodeWindow(puts []Put, indices []int) int {
	l.out = l.out[:0]
	for n, i := range indices {
		p := puts[i]
		if n == windowPuts || n > 0 && len(l.out)+len(p.Body) > windowBytes {
			return n
		}
		if p.Tube != l.used {
			l.out = append(append(append(l.out, "use "...), p.Tube...), "\r\n"...)
			l.used = p.Tube
		}
		l.out = append(l.out, "put"...)
		for _, field := range [...]uint64{uint64(p.Priority), uint64(wait(p.Delay) / time.Second), uint64(wait(p.TTR) / time.Second), uint64(len(p.Body))} {
			l.out = appendField(l.out, field)
		}
		l.out = append(append(append(l.out, "\r\n"...), p.Body...), "\r\n"...)
	}
	return len(indices)
}

// readPut reads the reply to one put, past the replies to `use`.
func (l *link) readPut(result *PutResult) error {
	for {
		line, err := l.readLine()
		if err != nil {
			return err
		}
		word, rest, _ := bytes.Cut(line, []byte(" "))
		switch string(word) {
		case "USING":
			continue
		case "INSERTED", "BURIED":
			id, ok := parseUint(rest)
			if !ok {
				return fmt.Errorf("%w %q to put", errProtocol, shorten(line))
			}
			result.ID = id
			if word[0] == 'B' {
				result.Err = ErrBuried
			}
			return nil
		}
		reply, ok := replies[string(line)]
		if !ok {
			return fmt.Errorf("%w %q to put", errProtocol, shorten(line))
		}
		result.Err = reply
		return nil
	}
}

// lost notes that the puts that were sent have no answer, and returns the fate of the rest.
func (c *Conn) lost(ctx context.Context, cause error, puts []Put, sent []int, results []PutResult) error {
	err := c.lose(ctx, cause, true)
	for _, i := range sent {
		if results[i] == (PutResult{}) {
			results[i].Err = c.failed(putOp(puts[i]), err)
		}
	}
	return fmt.Errorf("%w: the connection was lost on an earlier job: %w", ErrNotSent, cause)
}
