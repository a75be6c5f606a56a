package app

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/postburner/postburner/client"
)

const (
	// fileChunk is how many lines are put, and held in memory, at a time.
	fileChunk = 1000
	// maxLine bounds a line; no server takes a job that is nearly as long.
	maxLine = 16 << 20
)

// bulk puts a file of jobs.
type bulk struct {
	*program
	client   *client.Client
	name     string
	asJSON   bool
	progress *progress

	done, failed int // jobs
	last         int // line up to which all has been tried
}

// lineError is what is wrong with one line.
type lineError struct {
	line int
	err  error
}

// batch is some lines of the file.
type batch struct {
	items []client.Item
	lines []int       // of the items
	bad   []lineError // lines that are no jobs
	last  int         // line
	bytes int
	err   error // what ended the reading, but for the end of the file
}

// errNotEnqueued marks each line of a batch that failed for one common reason, which is
// printed once at the end.
var errNotEnqueued = errors.New("not enqueued")

// lineReceipt is a receipt of a bulk, as JSON.
type lineReceipt struct {
	Line int `json:"line"`
	client.Receipt
}

func (p *program) enqueueFile(ctx context.Context, s *settings, standard jobSpec, path string, asJSON bool) error {
	c, err := s.load()
	if err != nil {
		return err
	}
	enqueuer, err := p.newClient(c)
	if err != nil {
		return err
	}
	defer func() { _ = enqueuer.Close() }() // always nil
	in, name, size := p.Stdin, "standard input", int64(0)
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }() // only read from
		info, err := file.Stat()
		if err != nil {
			return err
		}
		in, name, size = file, path, info.Size()
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second one ends the process
	b := &bulk{program: p, client: enqueuer, name: name, asJSON: asJSON, progress: newProgress(p.Stderr, "enqueued", size)}
	err = b.run(ctx, in, standard)
	b.progress.end()
	if err != nil {
		return fmt.Errorf("%d jobs enqueued, %d not: %w", b.done, b.failed, withHint(c, err))
	}
	if !asJSON {
		if err := p.print("%d jobs enqueued, %d not\n", b.done, b.failed); err != nil {
			return fmt.Errorf("%d jobs enqueued, %d not, but that cannot be printed: %w", b.done, b.failed, err)
		}
	}
	if b.failed > 0 {
		return fmt.Errorf("%d of %d jobs of %s were not enqueued, see above", b.failed, b.done+b.failed, name)
	}
	return nil
}

// run puts the lines until the end, or until ctx ends or the server is lost. What has been
// read is put before the end of ctx counts, so that it is known how far it came.
func (b *bulk) run(ctx context.Context, in io.Reader, standard jobSpec) error {
	batches := make(chan batch)
	over := make(chan struct{})
	defer close(over)
	// A read of a terminal cannot be ended; the goroutine ends with it, at the latest with the process.
	go readJobs(in, standard, batches, over)
	for {
		select {
		case next, more := <-batches:
			if !more {
				return nil
			}
			lost, err := b.send(context.WithoutCancel(ctx), next)
			if err != nil {
				return err
			}
			if lost != nil {
				return fmt.Errorf("given up behind line %d: %w", b.last, lost)
			}
			if next.err != nil {
				return fmt.Errorf("read %s behind line %d: %w", b.name, b.last, next.err)
			}
		case <-ctx.Done():
			return fmt.Errorf("stopped behind line %d: to go on, leave out the lines up to there", b.last)
		}
	}
}

// readJobs reads lines and hands them over in batches, until the end of the file or of over.
func readJobs(in io.Reader, standard jobSpec, batches chan<- batch, over <-chan struct{}) {
	defer close(batches)
	lines := bufio.NewReaderSize(in, 64<<10)
	var b batch
	handOver := func() bool {
		select {
		case batches <- b:
			b = batch{last: b.last}
			return true
		case <-over:
			return false
		}
	}
	for b.err == nil {
		line, size, err := readLine(lines)
		if err != nil && !errors.Is(err, io.EOF) {
			b.err = err
			break
		}
		if errors.Is(err, io.EOF) && size == 0 {
			break
		}
		b.last++
		b.bytes += size
		text := bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")))
		if len(text) == 0 && size <= maxLine {
			continue
		}
		if size > maxLine {
			b.bad = append(b.bad, lineError{b.last, fmt.Errorf("is longer than %d MiB", maxLine>>20)})
		} else if spec, err := parseJob(text, standard); err != nil {
			b.bad = append(b.bad, lineError{b.last, err})
		} else {
			b.items = append(b.items, spec.item())
			b.lines = append(b.lines, b.last)
		}
		if len(b.items)+len(b.bad) == fileChunk && !handOver() {
			return
		}
	}
	handOver()
}

// readLine reads a line and tells how long it is. Of one that is longer than maxLine nothing is kept.
func readLine(in *bufio.Reader) (line []byte, size int, err error) {
	for {
		part, err := in.ReadSlice('\n')
		size += len(part)
		if size > maxLine {
			line = nil
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, size, err
		}
	}
}

func parseJob(text []byte, standard jobSpec) (jobSpec, error) {
	var spec jobSpec
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&spec); err != nil {
		return spec, fmt.Errorf("is not a job: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return spec, errors.New("has something behind its JSON object")
	}
	spec = spec.or(standard)
	return spec, spec.check()
}

// send puts a batch and tells of the lines that were not enqueued. lost says that there is no point in going on.
func (b *bulk) send(ctx context.Context, next batch) (lost, err error) {
	results, err := b.client.EnqueueMany(ctx, next.items)
	if _, some := errors.AsType[*client.ManyError](err); err != nil && !some {
		return nil, err
	}
	problems := next.bad
	var unprinted error // what keeps the receipts from being printed
	for i, result := range results {
		switch {
		case result.Err == nil:
			b.done++
			if b.asJSON && unprinted == nil { // the rest of the batch is counted all the same: it is enqueued
				unprinted = b.printJSON(lineReceipt{next.lines[i], result.Receipt})
			}
			continue
		case errors.Is(result.Err, client.ErrUnknownOutcome):
			lost = result.Err
			result.Err = fmt.Errorf("may be enqueued or not; its job_id is %s", result.JobID)
		case errors.Is(result.Err, client.ErrNotSent), errors.Is(result.Err, client.ErrDraining), errors.Is(result.Err, client.ErrOutOfMemory):
			lost = cmp.Or(lost, result.Err)
			result.Err = errNotEnqueued
		}
		problems = append(problems, lineError{next.lines[i], result.Err})
	}
	b.last = next.last
	b.failed += len(problems)
	b.tell(problems)
	b.progress.advance(next.bytes, b.done)
	if unprinted != nil {
		return nil, fmt.Errorf("given up behind line %d: its receipts cannot be printed: %w", b.last, errors.Join(unprinted, lost))
	}
	return lost, nil
}

// tell reports problems in the order of their lines, those that are alike in one go.
func (b *bulk) tell(problems []lineError) {
	slices.SortStableFunc(problems, func(x, y lineError) int { return cmp.Compare(x.line, y.line) })
	for from := 0; from < len(problems); {
		to := from + 1
		for to < len(problems) && problems[to].err.Error() == problems[from].err.Error() {
			to++
		}
		first, last := problems[from], problems[to-1]
		if to-from == 1 {
			b.progress.say("%s:%d: %v\n", b.name, first.line, first.err)
		} else {
			b.progress.say("%s:%d-%d: %d lines: %v\n", b.name, first.line, last.line, to-from, first.err)
		}
		from = to
	}
}
