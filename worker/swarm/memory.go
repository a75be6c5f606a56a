package swarm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// errNoProc: this system does not tell a process's memory.
var errNoProc = errors.New("the memory of a process is read from /proc, which only Linux has")

// warnIfMemoryLimitUnsupported warns of a limit that cannot be kept here.
func (s *Swarm) warnIfMemoryLimitUnsupported() {
	if s.opts.MemoryLimit > 0 && runtime.GOOS != "linux" {
		s.opts.Logger.Warn("a memory limit is not supported on this system and has no effect; leave it out", "reason", errNoProc)
	}
}

// checkMemory reads how much memory each child has, the oldest first.
func (s *Swarm) checkMemory(spawning context.Context) {
	s.mu.Lock()
	processes := maps.Clone(s.processes)
	s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(processes)) {
		p := processes[id]
		rss, err := residentMemory(p.pid())
		switch {
		case err == nil:
			s.mu.Lock()
			p.rss = rss
			s.mu.Unlock()
			s.handle(spawning, measured{id, rss})
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ESRCH), errors.Is(err, errNoProc): // it has ended, or Run has warned
		default:
			s.opts.Logger.Error("the memory of a child cannot be read", "slot", p.slot, "pid", p.pid(), "error", err)
		}
	}
}

// residentMemory reads how many bytes of a process are in memory.
func residentMemory(pid int) (int64, error) {
	if runtime.GOOS != "linux" {
		return 0, errNoProc
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
// has a memory limit, its share of that. They are defaults: what the user has set stays.
func shares(forks int, logger *slog.Logger) []string {
	variables := []string{fmt.Sprintf("GOMAXPROCS=%d", max(1, runtime.GOMAXPROCS(0)/forks))}
	limit, err := containerMemory(os.DirFS("/"))
	if err != nil {
		logger.Warn("the memory limit of the container cannot be read, so children have no GOMEMLIMIT of their own; set it if they need one", "error", err)
	}
	if limit > 0 {
		variables = append(variables, fmt.Sprintf("GOMEMLIMIT=%d", childMemory(limit, forks)))
	}
	return variables
}

// childMemory is a child's share of a container: nine tenths of it for the children, the
// rest for the parent and what is not Go's.
func childMemory(limit int64, forks int) int64 { return limit / 10 * 9 / int64(forks) }
