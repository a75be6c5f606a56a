package swarm

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestContainerMemoryIsTheLowestLimitOfTheControlGroups(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		files map[string]string
		want  int64
		err   string
	}{
		{"no control groups", nil, 0, ""},
		{"version 2 in a container", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "536870912\n"}, 512 << 20, ""},
		{"version 2 without a limit", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, 0, ""},
		{"version 2, the group above is tighter", map[string]string{
			"proc/self/cgroup":                                     "0::/system.slice/worker.service\n",
			"sys/fs/cgroup/system.slice/memory.max":                "1000\n",
			"sys/fs/cgroup/system.slice/worker.service/memory.max": "2000\n",
		}, 1000, ""},
		{"version 1 in a container, where the path of the host is not mounted", map[string]string{
			"proc/self/cgroup":                           "5:cpu,cpuacct:/docker/x\n4:memory:/docker/x\n0::/docker/x\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "1073741824\n",
		}, 1 << 30, ""},
		{"version 1 without a limit", map[string]string{
			"proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 0, ""},
		{"a limit that is no number", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "lots\n"}, 0, "sys/fs/cgroup/memory.max"},
		{"a list that is none", map[string]string{"proc/self/cgroup": "nonsense\n"}, 0, "nonsense"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			root := fstest.MapFS{}
			for name, text := range test.files {
				root[name] = &fstest.MapFile{Data: []byte(text)}
			}
			got, err := containerMemory(root)
			if got != test.want {
				t.Errorf("limit %d, want %d", got, test.want)
			}
			if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("error %v, want one with %q", err, test.err)
			}
		})
	}
}

func TestOOMKillsAreThoseOfTheOwnControlGroup(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		files map[string]string
		want  int64
		ok    bool
	}{
		{"no control groups", nil, 0, false},
		{"version 2", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.events": "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\n"}, 2, true},
		{"version 2, below others", map[string]string{
			"proc/self/cgroup":                      "0::/a/b\n",
			"sys/fs/cgroup/a/memory.events":         "oom_kill 7\n",
			"sys/fs/cgroup/a/b/memory.events":       "oom_kill 1\n",
			"sys/fs/cgroup/a/b/memory.events.local": "oom_kill 9\n",
		}, 1, true},
		{"version 1", map[string]string{
			"proc/self/cgroup":                        "4:memory:/docker/x\n",
			"sys/fs/cgroup/memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n",
		}, 5, true},
		{"an old kernel", map[string]string{
			"proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\n",
		}, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			root := fstest.MapFS{}
			for name, text := range test.files {
				root[name] = &fstest.MapFile{Data: []byte(text)}
			}
			got, ok, err := oomKills(root)
			if got != test.want || ok != test.ok || err != nil {
				t.Errorf("%d, %v, %v; want %d, %v", got, ok, err, test.want, test.ok)
			}
		})
	}
}

func TestTheHintAtTheOOMKillerKnowsTheCounter(t *testing.T) {
	t.Parallel()
	killsAre := func(n string) fstest.MapFS {
		return fstest.MapFS{
			"proc/self/cgroup":            {Data: []byte("0::/\n")},
			"sys/fs/cgroup/memory.events": {Data: []byte("oom_kill " + n + "\n")},
		}
	}
	w := newOOMWatch(killsAre("4"))
	for _, step := range []struct {
		root fstest.MapFS
		want string
	}{
		{killsAre("4"), "killed no process of this container"},
		{killsAre("5"), "the kernel's OOM killer has killed 1 process of this container"},
		{killsAre("8"), "the kernel's OOM killer has killed 3 processes of this container"},
		{fstest.MapFS{}, "look for the kernel's OOM killer in dmesg"},
	} {
		w.root = step.root
		if got := w.hint(); !strings.Contains(got, step.want) {
			t.Errorf("hint %q, want %q in it", got, step.want)
		}
	}
}

func TestChildrenShareNineTenthsOfTheContainer(t *testing.T) {
	t.Parallel()
	if got := childMemory(1000, 3); got != 300 {
		t.Errorf("each of 3 children gets %d of 1000, want 300", got)
	}
}

func TestWhatTheUserHasSetStays(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name       string
		has, wants []string
	}{
		{"not set", []string{"PATH=/bin"}, []string{"PATH=/bin", "GOMAXPROCS=2"}},
		{"set", []string{"GOMAXPROCS=7"}, []string{"GOMAXPROCS=7"}},
		{"set to nothing", []string{"GOMAXPROCS="}, []string{"GOMAXPROCS=", "GOMAXPROCS=2"}},
		{"another variable that begins alike", []string{"GOMAXPROCS2=7"}, []string{"GOMAXPROCS2=7", "GOMAXPROCS=2"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := withDefaults(test.has, []string{"GOMAXPROCS=2"}); !slices.Equal(got, test.wants) {
				t.Errorf("environment %v, want %v", got, test.wants)
			}
		})
	}
}
