package swarm

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

func newTestBoard(rows int) *Board { return boardOn(make([]byte, rows*rowSize)) }

func TestBoardSaysWhatEachConsumerRuns(t *testing.T) {
	t.Parallel()
	at := time.Unix(1700000000, 42)
	long := strings.Repeat("LongKind", 9)
	for _, test := range []struct {
		name string
		note func(b *Board)
		want []Row
	}{
		{"nothing at first", func(*Board) {}, nil},
		{"a job", func(b *Board) { b.Start(1, 7, 5, "SendEmail", at) }, []Row{{1, 7, 5, "SendEmail", at}}},
		{"nothing once it is finished", func(b *Board) { b.Start(1, 7, 5, "SendEmail", at); b.Finish(1) }, nil},
		{"the later job, without what is left of a longer name", func(b *Board) {
			b.Start(0, 7, 5, "AVeryMuchLongerKindThanTheNext", at)
			b.Finish(0)
			b.Start(0, 8, 5, "Short", at)
		}, []Row{{0, 8, 5, "Short", at}}},
		{"a name of exactly a word", func(b *Board) { b.Start(0, 7, 5, long, at); b.Start(0, 8, 5, "Exactly8", at) }, []Row{{0, 8, 5, "Exactly8", at}}},
		{"64 bytes of a longer name", func(b *Board) { b.Start(0, 7, 5, long, at) }, []Row{{0, 7, 5, long[:64], at}}},
		{"a job without a name", func(b *Board) { b.Start(0, 7, 5, "", at) }, []Row{{0, 7, 5, "", at}}},
		{"nothing of a consumer that it has no row for", func(b *Board) { b.Start(2, 7, 5, "X", at); b.Start(-1, 7, 5, "X", at); b.Finish(2) }, nil},
		{"nothing of a row that a crash left half written", func(b *Board) { b.Start(0, 7, 5, "X", at); b.rows[0].version.Add(1) }, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newTestBoard(2)
			test.note(b)
			got := b.Rows()
			if fmt.Sprint(got) != fmt.Sprint(test.want) || len(got) == 1 && !got[0].Since.Equal(at) {
				t.Errorf("rows are %v, want %v", got, test.want)
			}
		})
	}
}

// A reader sees one job or another, never a mixture: here all parts of a row belong together.
func TestBoardIsNeverReadHalfWritten(t *testing.T) {
	t.Parallel()
	b := newTestBoard(1)
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for id := uint64(1); ; id++ {
			select {
			case <-stop:
				return
			default:
				b.Start(0, id, ^id, fmt.Sprintf("Kind%024d", id), time.Unix(0, int64(id)))
				b.Finish(0)
			}
		}
	})
	seen := 0
	deadline := time.Now().Add(patience)
	for seen < 20_000 {
		for _, r := range b.Rows() {
			seen++
			if want := fmt.Sprintf("Kind%024d", r.ID); r.Kind != want || r.Key != ^r.ID || uint64(r.Since.UnixNano()) != r.ID {
				t.Fatalf("torn: id %d, kind %s, since %d", r.ID, r.Kind, r.Since.UnixNano())
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("only %d rows were seen within %v", seen, patience)
		}
	}
	close(stop)
	writer.Wait()
}

func BenchmarkBoardStartAndFinish(b *testing.B) {
	board := newTestBoard(1)
	at := time.Now()
	for b.Loop() {
		board.Start(0, 7, 5, "SendWelcomeEmail", at)
		board.Finish(0)
	}
}
