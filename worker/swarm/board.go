package swarm

import (
	"encoding/binary"
	"fmt"
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
	key     atomic.Uint64
	since   atomic.Int64 // Unix nanoseconds
	kind    [kindWords]atomic.Uint64
	_       [4]uint64 // two cache lines a row, so that consumers do not slow each other
}

const rowSize = int(unsafe.Sizeof(row{}))

// Board is a page of memory that parent and child share, on which each consumer notes
// what it runs. It outlives a crash of the child. Writing costs well under 100 ns and waits for nobody.
type Board struct {
	rows   []row
	memory []byte // nil once it is given back
}

// Row is what a consumer of a child was running.
type Row struct {
	Consumer int
	ID       uint64 // beanstalkd's
	Key      uint64 // tells the job from another that had the same id on another server
	Kind     string // its first 64 bytes
	Since    time.Time
}

// String names the job as log lines do.
func (r Row) String() string { return fmt.Sprintf("%s (job %d)", r.Kind, r.ID) }

// boardOn lays the rows over shared memory.
func boardOn(memory []byte) *Board {
	rows := unsafe.Slice((*row)(unsafe.Pointer(unsafe.SliceData(memory))), len(memory)/rowSize)
	return &Board{rows: rows, memory: memory}
}

// Start notes that a consumer starts a job. Consumers are numbered from 0, and each makes
// its own calls; those of a number that the board has no row for do nothing.
func (b *Board) Start(consumer int, id, key uint64, kind string, at time.Time) {
	if uint(consumer) >= uint(len(b.rows)) {
		return
	}
	r := &b.rows[consumer]
	r.version.Add(1)
	r.since.Store(at.UnixNano())
	r.key.Store(key)
	var word [8]byte
	for i := range r.kind {
		clear(word[:])
		if from := i * len(word); from < len(kind) {
			copy(word[:], kind[from:])
		}
		r.kind[i].Store(binary.LittleEndian.Uint64(word[:]))
		if word[7] == 0 {
			break // reading ends at a zero byte
		}
	}
	r.id.Store(id)
	r.version.Add(1)
}

// Finish notes that a consumer runs nothing. What else its row says is left: without an id nobody reads it.
func (b *Board) Finish(consumer int) {
	if uint(consumer) < uint(len(b.rows)) {
		b.rows[consumer].id.Store(0)
	}
}

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

// readTries is how often a row that changes meanwhile is read anew.
const readTries = 100

// read returns a row that is not being written; one that a dying child left half written is not returned.
func (r *row) read() (Row, bool) {
	for range readTries {
		version := r.version.Load()
		if version%2 == 1 {
			continue
		}
		out := Row{ID: r.id.Load(), Key: r.key.Load(), Since: time.Unix(0, r.since.Load())}
		if out.ID == 0 {
			return Row{}, false
		}
		name := make([]byte, 0, kindWords*8)
		for i := range r.kind {
			name = binary.LittleEndian.AppendUint64(name, r.kind[i].Load())
		}
		if r.version.Load() != version {
			continue
		}
		for i, c := range name {
			if c == 0 {
				name = name[:i]
				break
			}
		}
		out.Kind = string(name)
		return out, true
	}
	return Row{}, false
}
