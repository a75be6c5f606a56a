package swarm

import (
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// checkMemory has the children replaced that have more in memory than they may.
func (s *Swarm) checkMemory() {
	if s.opts.MemoryLimit <= 0 {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(s.processes)) { // the oldest first
		p := s.processes[id]
		rss, err := residentMemory(p.cmd.Process.Pid)
		if err != nil {
			s.opts.Logger.Error("memory_limit cannot be looked after", "slot", p.slot, "pid", p.cmd.Process.Pid, "error", err)
			continue
		}
		if rss > s.opts.MemoryLimit {
			s.handle(evReplace{id, fmt.Sprintf("it has %d MB in memory, memory_limit is %d MB", rss>>20, s.opts.MemoryLimit>>20)})
		}
	}
}

// residentMemory reads how many bytes of a process are in memory.
func residentMemory(pid int) (int64, error) {
	if runtime.GOOS != "linux" {
		return 0, fmt.Errorf("the memory of a process is read from /proc, which %s does not have: leave memory_limit out", runtime.GOOS)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, fmt.Errorf("read %q of process %d: want at least two numbers", text, pid)
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()), err
}

// shares returns what of the machine each child gets, as variables for it: a processor's share,
// since children that each use all of them get less done together, and, if the container
// has a memory limit, its share of that. What the user has set stays.
func shares(forks int, logger *slog.Logger) []string {
	var variables []string
	if os.Getenv("GOMAXPROCS") == "" {
		variables = append(variables, fmt.Sprintf("GOMAXPROCS=%d", max(1, runtime.GOMAXPROCS(0)/forks)))
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		limit, err := containerMemory("/")
		if err != nil {
			logger.Warn("the memory limit of the container cannot be read; children have no GOMEMLIMIT", "error", err)
		}
		if limit > 0 {
			variables = append(variables, fmt.Sprintf("GOMEMLIMIT=%d", childMemory(limit, forks)))
		}
	}
	return variables
}

// childMemory is a child's share of a container: nine tenths of it for the children, the
// rest for the parent and what is not Go's.
func childMemory(limit int64, forks int) int64 { return limit / 10 * 9 / int64(forks) }

// containerMemory returns the memory limit of the control group that this process is in, 0 if it has none:
// memory.max of version 2, memory.limit_in_bytes of version 1, below root.
func containerMemory(root string) (int64, error) {
	for _, name := range []string{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return 0, err
		}
		value := strings.TrimSpace(string(text))
		if value == "max" {
			return 0, nil
		}
		limit, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read %s: %w", name, err)
		}
		if limit > math.MaxInt64/2 { // version 1 says "none" with the largest number of pages
			return 0, nil
		}
		return limit, nil
	}
	return 0, nil
}
