package swarm

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// groupFiles are the names of what is read of a control group, in version 2 and in
// version 1; see cgroups(7) and the kernel's cgroup-v2.rst and cgroup-v1/memory.rst.
type groupFiles struct{ v2, v1 string }

var (
	limitFiles = groupFiles{"memory.max", "memory.limit_in_bytes"}
	eventFiles = groupFiles{"memory.events", "memory.oom_control"}
)

// containerMemory returns the memory limit, in bytes, of the control group that this process is in, 0 if it has none. root is
// the file system from / on. The groups above count as well, as far as they can be seen.
func containerMemory(root fs.FS) (int64, error) {
	lowest := int64(0)
	err := readGroups(root, limitFiles, func(text string) (bool, error) {
		limit, err := parseLimit(strings.TrimSpace(text))
		if limit > 0 && (lowest == 0 || limit < lowest) {
			lowest = limit
		}
		return true, err
	})
	return lowest, err
}

// oomKills returns how many processes of this process's control group the kernel has
// killed for want of memory; ok is false if that cannot be known.
func oomKills(root fs.FS) (kills int64, ok bool, err error) {
	err = readGroups(root, eventFiles, func(text string) (bool, error) {
		for line := range strings.Lines(text) {
			if value, found := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); found && !ok {
				n, err := strconv.ParseInt(value, 10, 64)
				kills, ok = n, err == nil
				return false, err
			}
		}
		return true, nil
	})
	return kills, ok, err
}

// readGroups hands out a file of each memory control group that this process is in, from
// its own up to the root of what is mounted, until read wants no more.
func readGroups(root fs.FS, files groupFiles, read func(text string) (more bool, err error)) error {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3) // number, controllers, path
		if len(fields) != 3 {
			return fmt.Errorf("read proc/self/cgroup: %q is not number:controllers:path", line)
		}
		base, file := "sys/fs/cgroup", files.v2
		if fields[1] != "" {
			if !hasController(fields[1], "memory") {
				continue
			}
			base, file = "sys/fs/cgroup/memory", files.v1
		}
		for at := path.Clean("/" + fields[2]); ; at = path.Dir(at) {
			name := path.Join(base, at, file)
			text, err := fs.ReadFile(root, name)
			more := true
			if err == nil {
				more, err = read(string(text))
			} else if errors.Is(err, fs.ErrNotExist) { // not mounted in this container, or the root group, which has none
				err = nil
			}
			if err != nil {
				return fmt.Errorf("read %s: %w", name, err)
			}
			if !more || at == "/" {
				break
			}
		}
	}
	return nil
}

func hasController(list, name string) bool {
	for controller := range strings.SplitSeq(list, ",") {
		if controller == name {
			return true
		}
	}
	return false
}

// parseLimit reads a limit; 0 is none. Version 2 says that with a word, version 1 with the largest number of whole pages.
func parseLimit(text string) (int64, error) {
	if text == "max" {
		return 0, nil
	}
	limit, err := strconv.ParseInt(text, 10, 64)
	if err != nil || limit > math.MaxInt64/2 {
		return 0, err
	}
	return limit, nil
}
