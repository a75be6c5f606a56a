package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/worker"
)

// idle measures what a worker costs while there is nothing to do, and what one job allocates.
func (b *bench) idle() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("reads /proc, which %s does not have", runtime.GOOS)
	}
	control, err := b.server.dial()
	if err != nil {
		return err
	}
	defer func() { _ = control.conn.Close() }()
	cmd, err := b.worker(b.server.url(), "forks: 4\n      threads: 10")
	if err != nil {
		return err
	}
	stop, err := startAll([]*exec.Cmd{cmd})
	if err != nil {
		return err
	}
	if err := control.await("current-waiting", 40); err != nil {
		return err
	}
	pids, err := family(cmd.Process.Pid)
	if err != nil {
		return err
	}
	rss, private, err := memory(pids[1])
	if err != nil {
		return err
	}
	const span = 20 * time.Second
	before, err := cpu(pids)
	if err != nil {
		return err
	}
	<-time.After(span)
	after, err := cpu(pids)
	if err != nil {
		return err
	}
	if err := stop(); err != nil {
		return err
	}
	objects, bytes, err := b.allocations()
	if err != nil {
		return err
	}
	b.print("\n### Cost at rest and per job\n\n| what | value |\n|---|---|\n")
	b.print("| RSS of a child with 10 idle consumers | %.1f MB, of which %.1f MB private |\n", float64(rss)/1e3, float64(private)/1e3)
	b.print("| CPU of an idle 4 × 10 worker, parent and children | %.2f %% of a core |\n", 100*(after-before).Seconds()/span.Seconds())
	b.print("| allocations per no-op job, envelope and arguments decoded | %.1f objects, %.0f bytes |\n", objects, bytes)
	return nil
}

// family returns the pid and those of its children.
func family(pid int) ([]int, error) {
	pids := []int{pid}
	// A Go program starts its children from whichever thread.
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil, err
	}
	for _, thread := range threads {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, thread.Name()))
		if err != nil {
			return nil, err
		}
		for field := range strings.FieldsSeq(string(text)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				return nil, err
			}
			pids = append(pids, child)
		}
	}
	if len(pids) < 2 {
		return nil, fmt.Errorf("process %d has no children", pid)
	}
	return pids, nil
}

// memory returns kilobytes resident and private.
func memory(pid int) (rss, private int, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "Rss:":
			rss, err = strconv.Atoi(fields[1])
		case "Private_Clean:", "Private_Dirty:":
			var part int
			part, err = strconv.Atoi(fields[1])
			private += part
		}
		if err != nil {
			return 0, 0, err
		}
	}
	return rss, private, nil
}

// cpu returns the user and system time of the processes so far, in the kernel's ticks of 10 ms.
func cpu(pids []int) (time.Duration, error) {
	var ticks int
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0, err
		}
		// The name in parentheses may hold blanks; utime and stime are the 12th and 13th field after it.
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		for _, field := range fields[11:13] {
			n, err := strconv.Atoi(field)
			if err != nil {
				return 0, err
			}
			ticks += n
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

// allocations counts what the whole process allocates while a pool runs the jobs of one round.
func (b *bench) allocations() (objects, bytes float64, err error) {
	control, err := b.server.dial()
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = control.conn.Close() }()
	p, err := worker.New(worker.Options{
		Beanstalk: beanstalk.Options{URL: b.server.url()}, Tubes: []string{workTube}, Registry: registry(), Threads: 10,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return 0, 0, err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	if err := control.fill(workTube, b.jobs, body); err != nil {
		return 0, 0, err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	go func() { ended <- p.Run(ctx) }()
	for p.Stats().Done < uint64(b.jobs) {
		<-time.After(50 * time.Millisecond)
	}
	runtime.ReadMemStats(&after)
	stop()
	if err := <-ended; err != nil {
		return 0, 0, err
	}
	n := float64(b.jobs)
	return float64(after.Mallocs-before.Mallocs) / n, float64(after.TotalAlloc-before.TotalAlloc) / n, nil
}
