package app

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// progress shows how far something is: a bar on a terminal, a line each second elsewhere.
type progress struct {
	out     io.Writer
	what    string
	counted int
	shown   time.Time

	bars *mpb.Progress // nil: not on a terminal
	bar  *mpb.Bar
}

// newProgress begins one; total is the sum of what add will be called with, 0 if that is unknown.
func newProgress(out io.Writer, what string, total int64) *progress {
	p := &progress{out: out, what: what, shown: time.Now()}
	file, ok := out.(*os.File)
	if !ok || total <= 0 || !term.IsTerminal(int(file.Fd())) {
		return p
	}
	p.bars = mpb.New(mpb.WithOutput(out), mpb.WithWidth(50))
	p.bar = p.bars.AddBar(total,
		mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return what + " " })),
		mpb.AppendDecorators(decor.Percentage(), decor.Name(" "), decor.AverageETA(decor.ET_STYLE_GO)))
	return p
}

// add moves the bar on.
func (p *progress) add(n int) {
	if p.bar != nil {
		p.bar.IncrBy(n)
	}
}

// count says how many there are so far.
func (p *progress) count(n int) {
	p.counted = n
	if p.bar == nil && time.Since(p.shown) >= time.Second {
		p.shown = time.Now()
		p.say()
	}
}

func (p *progress) say() {
	_, _ = fmt.Fprintf(p.out, "%d %s\n", p.counted, p.what) // progress is no result
}

// end ends the bar, full or not.
func (p *progress) end() {
	if p.bar != nil {
		p.bar.Abort(false)
		p.bars.Wait()
	}
}
