package app

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/postburner/postburner/client"
)

// fileChunk is how many lines are put, and held in memory, at a time.
const fileChunk = 1000

// maxLine bounds a line; a job is at most what beanstalkd takes.
const maxLine = 16 << 20

// bulk puts a file of jobs.
type bulk struct {
	*program
	client   *client.Client
	standard jobSpec // what a line does not say
	name     string
	asJSON   bool
	progress *progress

	line   int // read last
	items  []client.Item
	lines  []int // of the items
	done   int
	failed int
}

func (p *program) enqueueFile(ctx context.Context, enqueuer *client.Client, standard jobSpec, path string, asJSON bool) error {
	in, name, size := p.Stdin, "standard input", int64(0)
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return failed(err)
		}
		defer func() { _ = file.Close() }() // only read from
		info, err := file.Stat()
		if err != nil {
			return failed(err)
		}
		in, name, size = file, path, info.Size()
	}
	b := &bulk{program: p, client: enqueuer, standard: standard, name: name, asJSON: asJSON, progress: newProgress(p.Stderr, "enqueued", size)}
	err := b.run(ctx, in)
	b.progress.end()
	if err != nil {
		return failed(err)
	}
	if !asJSON {
		if err := p.print("%d jobs enqueued, %d not\n", b.done, b.failed); err != nil {
			return err
		}
	}
	if b.failed > 0 {
		return &exitError{ExitFailure, fmt.Errorf("%d of %d jobs of %s were not enqueued, see above", b.failed, b.done+b.failed, name)}
	}
	return nil
}

func (b *bulk) run(ctx context.Context, in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	for lines.Scan() {
		b.line++
		b.progress.add(len(lines.Bytes()) + 1)
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		it, err := b.parse(text)
		if err != nil {
			b.complainLine(b.line, err)
			continue
		}
		b.items = append(b.items, it)
		b.lines = append(b.lines, b.line)
		if len(b.items) == fileChunk {
			if err := b.send(ctx); err != nil {
				return err
			}
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read %s behind line %d: %w", b.name, b.line, err)
	}
	return b.send(ctx)
}

func (b *bulk) parse(text []byte) (client.Item, error) {
	spec := b.standard
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&spec); err != nil {
		return client.Item{}, fmt.Errorf("is not a job: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return client.Item{}, errors.New("has more than one JSON object")
	}
	return spec.item()
}

// send puts what has been read so far.
func (b *bulk) send(ctx context.Context) error {
	results, err := b.client.EnqueueMany(ctx, b.items)
	if _, ok := errors.AsType[*client.ManyError](err); err != nil && !ok {
		return err
	}
	for i, result := range results {
		if result.Err != nil {
			b.complainLine(b.lines[i], result.Err)
			continue
		}
		b.done++
		if b.asJSON {
			if err := b.printJSON(result.Receipt); err != nil {
				return err
			}
		}
	}
	b.progress.count(b.done)
	b.items, b.lines = b.items[:0], b.lines[:0]
	return ctx.Err()
}

func (b *bulk) complainLine(line int, err error) {
	b.failed++
	b.complain("%s:%d: %v\n", b.name, line, err)
}
