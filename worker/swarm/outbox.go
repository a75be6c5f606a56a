package swarm

import "sync"

// outbox holds what a child is still to be told, so that whoever tells it never waits.
type outbox struct {
	mu     sync.Mutex // guards what follows
	lines  []string
	closed bool
	news   chan struct{} // there is something in lines, or closed
}

func newOutbox() *outbox { return &outbox{news: make(chan struct{}, 1)} }

func (o *outbox) put(line string) {
	o.mu.Lock()
	o.lines = append(o.lines, line)
	o.mu.Unlock()
	nudge(o.news)
}

// close ends take.
func (o *outbox) close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	nudge(o.news)
}

// take waits for lines; none says that the outbox is closed.
func (o *outbox) take() []string {
	for {
		o.mu.Lock()
		lines, closed := o.lines, o.closed
		o.lines = nil
		o.mu.Unlock()
		if closed {
			return nil
		}
		if len(lines) > 0 {
			return lines
		}
		<-o.news
	}
}
