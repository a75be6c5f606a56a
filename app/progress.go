package app

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// progress shows how far something is: a bar on a terminal, a line each second elsewhere.
type progress struct {
	out     io.Writer
	what    string
	counted atomic.Int64
	shown   time.Time

	bars *mpb.Progress // nil: not on a terminal
	bar  *mpb.Bar
}

// statusEvery is how often a line tells of the progress where there is no bar.
const statusEvery = time.Second

// newProgress begins one; total is the sum of what advance will be called with, 0 if that is unknown.
func newProgress(out io.Writer, what string, total int64) *progress {
	p := &progress{out: out, what: what, shown: time.Now()}
	if total <= 0 || !isTerminal(out) {
		return p
	}
	p.bars = mpb.New(mpb.WithOutput(out), mpb.WithWidth(50))
	p.bar = p.bars.AddBar(total,
		mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return fmt.Sprintf("%d %s", p.counted.Load(), what) })),
		mpb.AppendDecorators(decor.Percentage(), decor.Name(" "), decor.AverageETA(decor.ET_STYLE_GO)))
	return p
}

// isTerminal reports whether a bar can be drawn: some terminals, such as those of a CI system, have no width.
func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	width, _, err := term.GetSize(int(file.Fd()))
	return err == nil && width > 0
}

// advance moves the bar on by n of the total, and says how many things there are so far.
func (p *progress) advance(n, count int) {
	p.counted.Store(int64(count))
	if p.bar != nil {
		p.bar.IncrBy(n)
		return
	}
	if time.Since(p.shown) >= statusEvery {
		p.shown = time.Now()
		p.say("%d %s\n", count, p.what)
	}
}

// say writes a line, above the bar if there is one.
func (p *progress) say(format string, args ...any) {
	out := p.out
	if p.bars != nil {
		out = p.bars
	}
	_, _ = fmt.Fprintf(out, format, args...) // it is told, not a result
}

// end ends the bar, full or not.
func (p *progress) end() {
	if p.bar != nil {
		p.bar.Abort(false)
		p.bars.Wait()
	}
}
