package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// contender is one side of a comparison: how to start its processes.
type contender struct {
	name        string
	connections int
	commands    func() ([]*exec.Cmd, error)
}

// work compares how many no-op jobs a second each contender gets through.
func (b *bench) work() error {
	for _, connections := range []int{10, 40} {
		rates, err := b.compare([]contender{
			b.loop("bare", connections, 1), b.loop("raw", connections, 1), b.loop("pool", connections, 1),
		})
		if err != nil {
			return err
		}
		b.print("\n### One process, %d connections\n\n| loop | jobs/s, median (min–max) | pool ÷ this |\n|---|---|---|\n", connections)
		for i, name := range []string{"(a) bare go-beanstalk, reserve then delete", "(b) raw socket, delete and reserve in one write", "(c) the pool"} {
			b.print("| %s | %s | %.2f |\n", name, spread(rates[i]), ratio(rates[2], rates[i]))
		}
	}
	for _, shape := range []struct{ forks, threads int }{{2, 5}, {4, 10}} {
		rates, err := b.compare([]contender{b.loop("raw", shape.threads, shape.forks), b.swarm(shape.forks, shape.threads)})
		if err != nil {
			return err
		}
		b.print("\n### %d processes × %d connections\n\n| processes | jobs/s, median (min–max) | swarm ÷ this |\n|---|---|---|\n", shape.forks, shape.threads)
		for i, name := range []string{"(b) raw socket loop in each", "(d) the swarm"} {
			b.print("| %s | %s | %.2f |\n", name, spread(rates[i]), ratio(rates[1], rates[i]))
		}
	}
	return nil
}

// loop is a contender of this binary, in so many processes with so many connections each.
func (b *bench) loop(kind string, connections, processes int) contender {
	return contender{kind, connections * processes, func() ([]*exec.Cmd, error) {
		var commands []*exec.Cmd
		for range processes {
			cmd := exec.Command(os.Args[0], "contend", kind, b.server.addr, strconv.Itoa(connections))
			if processes > 1 { // as the swarm does for its children
				cmd.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", max(1, runtime.NumCPU()/processes)))
			}
			commands = append(commands, cmd)
		}
		return commands, nil
	}}
}

// swarm is the whole worker as operators run it.
func (b *bench) swarm(forks, threads int) contender {
	return contender{"swarm", forks * threads, func() ([]*exec.Cmd, error) {
		cmd, err := b.worker(b.server.url(), fmt.Sprintf("forks: %d\n      threads: %d", forks, threads))
		return []*exec.Cmd{cmd}, err
	}}
}

// worker prepares `work` of this binary with a configuration of its own.
func (b *bench) worker(url, keys string) (*exec.Cmd, error) {
	b.workers++
	file := filepath.Join(b.dir, fmt.Sprintf("%d.yml", b.workers))
	yml := fmt.Sprintf("production:\n  beanstalk_url: %s\n  log: {level: warn}\n  workers:\n    default:\n      queues: [default]\n      %s\n", url, keys)
	if err := os.WriteFile(file, []byte(yml), 0o600); err != nil {
		return nil, err
	}
	return exec.Command(os.Args[0], "work", "--env", "production", "--worker", "default", "--config", file), nil
}

// compare gives each contender the same jobs, in turn, round after round, and returns
// their rates by contender and round.
func (b *bench) compare(contenders []contender) ([][]float64, error) {
	rates := make([][]float64, len(contenders))
	for round := range b.rounds + 1 {
		for i, c := range contenders {
			rate, err := b.race(c)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			if round > 0 { // the first one warms the machine up
				rates[i] = append(rates[i], rate)
			}
		}
	}
	return rates, nil
}

// race measures one contender once: the tube is filled while it is paused and all
// consumers wait, then the pause ends and the clock runs until the tube is empty.
func (b *bench) race(c contender) (rate float64, err error) {
	control, err := b.server.dial()
	if err != nil {
		return 0, err
	}
	defer func() { _ = control.conn.Close() }()
	if _, err := control.command("watch %s", workTube); err != nil { // keeps the tube, and with it the pause, alive
		return 0, err
	}
	if _, err := control.command("pause-tube %s 3600", workTube); err != nil {
		return 0, err
	}
	commands, err := c.commands()
	if err != nil {
		return 0, err
	}
	stop, err := startAll(commands)
	defer func() {
		if stopErr := stop(); err == nil {
			err = stopErr
		}
	}()
	if err != nil {
		return 0, err
	}
	if err := control.fill(workTube, b.jobs, body); err != nil {
		return 0, err
	}
	if err := control.await("current-waiting", c.connections); err != nil {
		return 0, err
	}
	start := time.Now()
	if _, err := control.command("pause-tube %s 0", workTube); err != nil {
		return 0, err
	}
	if err := control.await("current-jobs-ready", 0); err != nil {
		return 0, err
	}
	if err := control.await("current-jobs-reserved", 0); err != nil {
		return 0, err
	}
	return float64(b.jobs) / time.Since(start).Seconds(), nil
}

// startAll starts the commands; stop asks them to end and waits.
func startAll(commands []*exec.Cmd) (stop func() error, err error) {
	var started []*exec.Cmd
	stop = func() error {
		var first error
		for _, cmd := range started {
			_ = cmd.Process.Signal(syscall.SIGTERM) // Wait reports how it ended
		}
		for _, cmd := range started {
			if err := cmd.Wait(); err != nil && first == nil {
				first = fmt.Errorf("%s: %w", cmd, err)
			}
		}
		return first
	}
	for _, cmd := range commands {
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			return stop, err
		}
		started = append(started, cmd)
	}
	return stop, nil
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

// ratio is the median of a ÷ b round by round.
func ratio(a, b []float64) float64 {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = a[i] / b[i]
	}
	return median(ratios)
}

func spread(rates []float64) string {
	return fmt.Sprintf("%.0f (%.0f–%.0f)", median(rates), slices.Min(rates), slices.Max(rates))
}
