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

// containerMemory returns the memory limit, in bytes, of the control group that this process is in, 0 if it has none. root is
// the file system from / on. The groups above count as well, as far as they can be seen; see cgroups(7).
func containerMemory(root fs.FS) (int64, error) {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	limit := int64(0)
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3) // number, controllers, path
		if len(fields) != 3 {
			return 0, fmt.Errorf("read proc/self/cgroup: %q is not number:controllers:path", line)
		}
		var base, file string
		switch {
		case fields[1] == "": // version 2
			base, file = "sys/fs/cgroup", "memory.max"
		case hasController(fields[1], "memory"): // version 1
			base, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		found, err := groupLimit(root, base, fields[2], file)
		if err != nil {
			return 0, err
		}
		if found > 0 && (limit == 0 || found < limit) {
			limit = found
		}
	}
	return limit, nil
}

func hasController(list, name string) bool {
	for controller := range strings.SplitSeq(list, ",") {
		if controller == name {
			return true
		}
	}
	return false
}

// groupLimit returns the lowest limit on the way from a group up to the root of what is mounted.
func groupLimit(root fs.FS, base, group, file string) (int64, error) {
	lowest := int64(0)
	for at := path.Clean("/" + group); ; at = path.Dir(at) {
		name := path.Join(base, at, file)
		text, err := fs.ReadFile(root, name)
		switch {
		case errors.Is(err, fs.ErrNotExist): // not mounted in this container, or the root group, which has none
		case err != nil:
			return 0, err
		default:
			limit, err := parseLimit(strings.TrimSpace(string(text)))
			if err != nil {
				return 0, fmt.Errorf("read %s: %w", name, err)
			}
			if limit > 0 && (lowest == 0 || limit < lowest) {
				lowest = limit
			}
		}
		if at == "/" {
			return lowest, nil
		}
	}
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
