package beanstalk

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
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

// windowBytes is how much is written at a time.
const windowBytes = 64 << 10

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
	if p.Delay < 0 || wait(p.Delay)/time.Second > math.MaxUint32 || wait(p.TTR)/time.Second > math.MaxUint32 {
		return fmt.Errorf("a delay of %v with a TTR of %v: the server keeps 32 bits of seconds", p.Delay, p.TTR)
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
	used := l.used
	w := &putWriter{link: l, timeout: c.opts.ReplyTimeout, puts: puts, indices: valid}
	if w.err = w.window(); w.err != nil && w.begun == 0 {
		return c.lose(ctx, w.err, false)
	}
	// The server answers one put after another and stops reading once its answers are not
	// read: what does not fit into one window is written while the answers come in.
	written := make(chan struct{})
	if w.begun < len(valid) {
		go func() {
			defer close(written)
			w.rest()
		}()
	} else {
		close(written)
	}
	answered, err := c.readPuts(l, used, puts, valid, results)
	if err != nil {
		l.close() // ends the writer
	}
	<-written
	l.deadline = time.Time{} // reader and writer have set their own
	if err == nil {
		c.failures = 0
		return nil
	}
	err = cmp.Or(w.err, err)
	lost := c.lose(ctx, err, true)
	for _, i := range valid[answered:w.begun] {
		results[i].Err = c.failed(putOp(puts[i]), lost)
	}
	return fmt.Errorf("%w: the connection was lost on an earlier job: %w", ErrNotSent, err)
}

// readPuts reads the answers and returns how many puts have theirs. used is the tube in
// use before the first.
func (c *Conn) readPuts(l *link, used string, puts []Put, valid []int, results []PutResult) (answered int, err error) {
	for n, i := range valid {
		if n%256 == 0 {
			if err := l.conn.SetReadDeadline(time.Now().Add(c.opts.ReplyTimeout)); err != nil {
				return n, err
			}
		}
		if tube := puts[i].Tube; tube != used {
			if err := l.readUsing(tube); err != nil {
				return n, err
			}
			used = tube
		}
		if err := l.readPut(&results[i]); err != nil {
			return n, err
		}
		if results[i].Err != nil {
			results[i].Err = c.failed(putOp(puts[i]), results[i].Err)
		}
	}
	return len(valid), nil
}

// putWriter writes puts, a window at a time.
type putWriter struct {
	*link
	timeout time.Duration
	puts    []Put
	indices []int // of the puts to write
	begun   int   // how many of them the server may have seen
	err     error
}

// rest writes what is left. An error also ends whoever waits for answers.
func (w *putWriter) rest() {
	for w.err == nil && w.begun < len(w.indices) {
		w.err = w.window()
	}
	if w.err != nil {
		w.close()
	}
}

// window writes the next window. Once any of it is on its way nobody can say how much the server has read.
func (w *putWriter) window() error {
	n := w.encode(w.indices[w.begun:])
	if err := w.conn.SetWriteDeadline(time.Now().Add(w.timeout)); err != nil {
		return err
	}
	sent, err := w.conn.Write(w.out)
	if sent > 0 {
		w.begun += n
	}
	return err
}

// encode puts the next commands into out, with `use` where the tube changes, and returns how many.
func (w *putWriter) encode(indices []int) int {
	w.out = w.out[:0]
	for n, i := range indices {
		p := w.puts[i]
		if n > 0 && len(w.out)+len(p.Body) > windowBytes {
			return n
		}
		if p.Tube != w.used {
			w.out = append(append(append(w.out, "use "...), p.Tube...), "\r\n"...)
			w.used = p.Tube
		}
		w.out = append(w.out, "put"...)
		for _, field := range [...]uint64{uint64(p.Priority), uint64(wait(p.Delay) / time.Second), uint64(wait(p.TTR) / time.Second), uint64(len(p.Body))} {
			w.out = appendField(w.out, field)
		}
		w.out = append(append(append(w.out, "\r\n"...), p.Body...), "\r\n"...)
	}
	return len(indices)
}

// readPut reads the reply to one put.
func (l *link) readPut(result *PutResult) error {
	line, err := l.readLine()
	if err != nil {
		return err
	}
	word, rest, _ := bytes.Cut(line, []byte(" "))
	if string(word) == "INSERTED" || string(word) == "BURIED" {
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
