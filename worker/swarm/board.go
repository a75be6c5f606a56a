package swarm

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"
)

// kindWords is how many machine words of a kind's name fit into a row.
const kindWords = 8

// row is one consumer's line of the board: what it runs. All of it is atomic words, so
// that the parent may read while the child writes; version is odd while it does.
type row struct {
	version atomic.Uint64
	id      atomic.Uint64 // 0: runs nothing
	since   atomic.Int64  // Unix nanoseconds
	kind    [kindWords]atomic.Uint64
	_       [5]uint64 // two cache lines a row, so that consumers do not slow each other
}

const rowSize = int(unsafe.Sizeof(row{}))

// Board is a page of memory that parent and child share, on which each consumer notes
// what it runs. It outlives a crash of the child. Writing costs well under 100 ns.
type Board struct {
	rows   []row
	memory []byte
}

// Row is what a consumer of a child was running.
type Row struct {
	Consumer int
	ID       uint64 // beanstalkd's
	Kind     string // its first 64 bytes
	Since    time.Time
}

func (r Row) String() string { return fmt.Sprintf("%s (job %d)", r.Kind, r.ID) }

// boardOn lays the rows over shared memory.
func boardOn(memory []byte) *Board {
	rows := unsafe.Slice((*row)(unsafe.Pointer(unsafe.SliceData(memory))), len(memory)/rowSize) //nolint:gosec // page-aligned memory of whole rows
	return &Board{rows: rows, memory: memory}
}

// Start notes that a consumer starts a job. Each consumer, numbered from 0, makes its own calls.
func (b *Board) Start(consumer int, id uint64, kind string, at time.Time) {
	r := &b.rows[consumer]
	r.version.Add(1)
	r.since.Store(at.UnixNano())
	var word [8]byte
	for i := range r.kind {
		clear(word[:])
		if from := i * len(word); from < len(kind) {
			copy(word[:], kind[from:])
		}
		value := binary.LittleEndian.Uint64(word[:])
		r.kind[i].Store(value)
		if value == 0 {
			break // reading ends at a zero byte
		}
	}
	r.id.Store(id)
	r.version.Add(1)
}

// Finish notes that a consumer runs nothing.
func (b *Board) Finish(consumer int) { b.rows[consumer].id.Store(0) }

// Rows returns what runs now, or ran when the child ended.
func (b *Board) Rows() []Row {
	var running []Row
	for i := range b.rows {
		if r, ok := b.rows[i].read(); ok {
			r.Consumer = i
			running = append(running, r)
		}
	}
	return running
}

// read returns a row that is not being written; one that a dying child left half written is not returned.
func (r *row) read() (Row, bool) {
	for range 100 {
		version := r.version.Load()
		id := r.id.Load()
		if version%2 == 1 {
			continue
		}
		if id == 0 {
			return Row{}, false
		}
		out := Row{ID: id, Since: time.Unix(0, r.since.Load())}
		var name []byte
		for i := range r.kind {
			name = binary.LittleEndian.AppendUint64(name, r.kind[i].Load())
		}
		if r.version.Load() == version {
			for i, c := range name {
				if c == 0 {
					name = name[:i]
					break
				}
			}
			out.Kind = string(name)
			return out, true
		}
	}
	return Row{}, false
}

// boardFile makes the memory of a board: a file that has no name.
func boardFile(rows int) (*os.File, error) {
	file, err := os.CreateTemp("", "postburner-board-")
	if err != nil {
		return nil, fmt.Errorf("make the board: %w", err)
	}
	if err = os.Remove(file.Name()); err == nil {
		err = file.Truncate(int64(rows * rowSize))
	}
	if err != nil {
		_ = file.Close() // the error that led here is the one that tells
		return nil, fmt.Errorf("make the board: %w", err)
	}
	return file, nil
}
