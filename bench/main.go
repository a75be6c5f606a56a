// Command bench measures Postburner side by side with the least that could do the
// same work, against the real beanstalkd, and prints the tables of
// docs/PERFORMANCE.md. Each contender is a process of its own; the contenders of a
// comparison take turns, round by round, and every ratio is the median of the
// ratios within a round, so a machine that gets slower meanwhile slows both sides.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/postburner/postburner/app"
)

// bench is one run: its settings and the server it measures against.
type bench struct {
	rounds int
	jobs   int
	out    io.Writer
	server *server

	dir     string // for configurations
	workers int    // that have one
}

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "work", "child": // the swarm's processes are this binary again
			app.Main(registry())
		case "contend":
			exit(contend(os.Args[2:]))
		}
	}
	b := &bench{out: os.Stdout}
	only := flag.String("only", "", "measure just this: work, enqueue, latency, idle or start")
	flag.IntVar(&b.rounds, "rounds", 5, "rounds of each comparison")
	flag.IntVar(&b.jobs, "jobs", 100_000, "jobs of each round")
	flag.Parse()
	exit(b.run(*only))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (b *bench) run(only string) error {
	server, err := startServer()
	if err != nil {
		return err
	}
	defer server.stop()
	b.server = server
	if b.dir, err = os.MkdirTemp("", "postburner-bench-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(b.dir) }() // a folder for temporary files
	b.print("%s, %d cores, %s, %d rounds of %d jobs of 200 bytes\n", runtime.Version(), runtime.NumCPU(), server.version, b.rounds, b.jobs)
	parts := []struct {
		name string
		run  func() error
	}{
		{"work", b.work}, {"enqueue", b.enqueue}, {"latency", b.latency}, {"idle", b.idle}, {"start", b.start},
	}
	found := false
	for _, part := range parts {
		if only != "" && only != part.name {
			continue
		}
		found = true
		if err := part.run(); err != nil {
			return fmt.Errorf("measure %s: %w", part.name, err)
		}
	}
	if !found {
		return fmt.Errorf("there is no measurement %q: use work, enqueue, latency, idle or start", only)
	}
	return nil
}

func (b *bench) print(format string, args ...any) {
	_, _ = fmt.Fprintf(b.out, format, args...) // standard output gone: nothing left to tell
}
