package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/postburner/postburner/beanstalk"
)

// check looks at how values go together, in the chosen worker and in the others.
func (l *loader) check() {
	c := l.config
	if err := beanstalk.CheckTube(c.Environment); err != nil {
		l.problems = append(l.problems, Problem{File: l.file, Message: fmt.Sprintf("environment %q cannot be part of a tube's name; name it with letters, digits and - + / ; . $ _ ( )", c.Environment)})
		return // every tube would be as wrong
	}
	l.checkQueue("default_queue", c.DefaultQueue)
	l.checkQueue("scheduler_queue", c.Scheduler.Queue)
	if c.DefaultQueue == c.Scheduler.Queue {
		l.conflict("default_queue", "is %s, the queue of the watchdog, which must hold nothing else; name another one, or another scheduler_queue", c.DefaultQueue)
	}
	if c.Retry.Max > 0 && c.Retry.Max < c.Retry.Base {
		l.conflict("retry.max", "is %s, below base, %s", shortDuration(c.Retry.Max), shortDuration(c.Retry.Base))
	}
	workers := maps.Clone(l.workers)
	workers[c.WorkerName] = &c.Worker
	for _, name := range slices.Sorted(maps.Keys(workers)) {
		l.checkWorker("workers."+name+".", workers[name])
	}
}

func (l *loader) checkWorker(path string, w *Worker) {
	if w.MemoryLimit > 0 && w.Forks == 0 {
		l.conflict(path+"memory_limit", "needs forks: with forks: 0 there is no child to replace; write none, or take it out")
	}
	seen := map[string]bool{}
	for i, queue := range w.Queues {
		at := item(path+"queues", i)
		l.checkQueue(at, queue)
		if queue == l.config.Scheduler.Queue {
			l.conflict(at, "names %s, the queue of the watchdog, which must hold nothing else; take it out, or name another scheduler_queue", queue)
		}
		if seen[queue] {
			l.conflict(at, "names %s twice", queue)
		}
		seen[queue] = true
	}
}

func (l *loader) checkQueue(path, queue string) {
	if queue == "" {
		l.conflict(path, "names a queue without a name")
		return
	}
	if err := beanstalk.CheckTube(l.config.Tube(queue)); err != nil {
		l.conflict(path, "names a queue that cannot be: %v", err)
	}
}

// conflict reports a value by where it stands, or by the flag or variable that it comes from.
func (l *loader) conflict(path, format string, args ...any) {
	key := path
	if strings.HasSuffix(path, "]") {
		key = path[:strings.LastIndex(path, "[")]
	}
	p := Problem{File: l.file, Path: join(l.root, key), Message: fmt.Sprintf(format, args...)}
	if at, ok := l.places[path]; ok {
		p.Line, p.Column = at.line, at.column
	} else if source, ok := l.sources[key]; ok {
		p.File = source
	}
	l.problems = append(l.problems, p)
}
