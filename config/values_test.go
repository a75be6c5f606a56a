package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postburner/postburner/config"
)

// TestValuesMayBeWrittenInSeveralWays sets one key, by a flag, and looks at what became of it.
func TestValuesMayBeWrittenInSeveralWays(t *testing.T) {
	t.Parallel()
	runtime := func(c *config.Config) any { return c.Worker.MaxRuntime }
	memory := func(c *config.Config) any { return c.Worker.MemoryLimit }
	for _, test := range []struct {
		key, text string
		get       func(*config.Config) any
		want      any
	}{
		{"max_runtime", "90", runtime, 90 * time.Second},
		{"max_runtime", "1_000", runtime, 1000 * time.Second},
		{"max_runtime", "1.5", runtime, 1500 * time.Millisecond},
		{"max_runtime", "1e3", runtime, 1000 * time.Second},
		{"max_runtime", "1h30m", runtime, 90 * time.Minute},
		{"max_runtime", "2500ms", runtime, 2500 * time.Millisecond},
		{"max_runtime", "8760h", runtime, 365 * 24 * time.Hour},
		{"max_runtime", "none", runtime, time.Duration(0)},
		{"memory_limit", "16000000", memory, int64(16_000_000)},
		{"memory_limit", "512MB", memory, int64(512_000_000)},
		{"memory_limit", "512 mb", memory, int64(512_000_000)},
		{"memory_limit", "512MiB", memory, int64(512 << 20)},
		{"memory_limit", "1.5GiB", memory, int64(3 << 29)},
		{"memory_limit", "20000kB", memory, int64(20_000_000)},
		{"memory_limit", "2TB", memory, int64(2_000_000_000_000)},
		{"memory_limit", "17000000B", memory, int64(17_000_000)},
		{"memory_limit", "none", memory, int64(0)},
		{"gc_limit", "+7", func(c *config.Config) any { return c.Worker.GCLimit }, 7},
		{"default_priority", "0", func(c *config.Config) any { return c.DefaultPriority }, uint32(0)},
		{"default_priority", "4294967295", func(c *config.Config) any { return c.DefaultPriority }, uint32(4294967295)},
		{"retry.factor", "1.5", func(c *config.Config) any { return c.Retry.Factor }, 1.5},
		{"retry.factor", "3", func(c *config.Config) any { return c.Retry.Factor }, 3.0},
		{"retry.exhausted", "discard", func(c *config.Config) any { return string(c.Retry.Exhausted) }, "discard"},
		{"default_queue", "2026", func(c *config.Config) any { return c.DefaultQueue }, "2026"},
		{"default_queue", "true", func(c *config.Config) any { return c.DefaultQueue }, "true"},
		{"default_queue", "010", func(c *config.Config) any { return c.DefaultQueue }, "010"},
		{"queues", "a, b,c", func(c *config.Config) any { return c.Worker.Queues }, []string{"a", "b", "c"}},
		{"beanstalk_url", "unix:///run/beanstalkd.sock", func(c *config.Config) any { return c.BeanstalkURL }, "unix:///run/beanstalkd.sock"},
	} {
		t.Run(test.key+" is "+test.text, func(t *testing.T) {
			t.Parallel()
			flags := map[string]string{"forks": "1", test.key: test.text}
			c := load(t, config.Source{NoFile: true, Environment: "production", Flags: flags})
			if diff := cmp.Diff(test.want, test.get(c)); diff != "" {
				t.Errorf("%s: %s (- want, + got):\n%s", test.key, test.text, diff)
			}
		})
	}
}

func TestAliasesStandInListsAndNoneUndoesWhatWasMerged(t *testing.T) {
	t.Parallel()
	s := good("lists_of_aliases.yml")
	if c := load(t, s); !cmp.Equal(c.Worker.Queues, []string{"critical", "mailers"}) {
		t.Errorf("queues %v, want those of the anchor", c.Worker.Queues)
	}
	s.Worker = "bulk"
	c := load(t, s)
	if c.Worker.GCLimit != 0 || c.Worker.MaxRuntime != 0 || !cmp.Equal(c.Worker.Queues, []string{"critical"}) {
		t.Errorf("bulk: gc_limit %d, max_runtime %v, queues %v; want 0, 0, critical", c.Worker.GCLimit, c.Worker.MaxRuntime, c.Worker.Queues)
	}
}

func TestAWorkerIsChosen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, test := range []struct{ name, workers, worker, want string }{
		{"none is there: the defaults", "{}", "", "default"},
		{"nothing is there", "", "", "default"},
		{"the only one", "{mailers: {threads: 2}}", "", "mailers"},
		{"the one named default", "{mailers: {threads: 2}, default: }", "", "default"},
		{"the one that is named", "{mailers: {threads: 2}, default: {}}", "mailers", "mailers"},
		{"one that is not there", "{mailers: {}, default: {}}", "mailer", "has no worker mailer (did you mean mailers?); there are default, mailers"},
		{"one where there are none", "{}", "mailers", "has no worker mailers; there are none"},
		{"no default among several", "{a: {}, b: {}}", "", "has no worker default; there are a, b"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(dir, strings.ReplaceAll(test.name, ":", "")+".yml")
			if err := os.WriteFile(path, []byte("production:\n  workers: "+test.workers+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := config.Load(config.Source{Path: path, Environment: "production", Worker: test.worker, Lookup: variables})
			if err != nil {
				if !strings.HasSuffix(err.Error(), ": production.workers: "+test.want) {
					t.Errorf("got %v, want %s", err, test.want)
				}
				return
			}
			if c.WorkerName != test.want {
				t.Errorf("worker %s, want %s", c.WorkerName, test.want)
			}
		})
	}
}

func TestAMissingWorkerHidesNoOtherProblem(t *testing.T) {
	t.Parallel()
	s := good("lists_of_aliases.yml")
	s.Worker, s.Flags = "mailerz", map[string]string{"default_queue": "not ok"}
	_, err := config.Load(s)
	for _, want := range []string{":4:5: production.workers: has no worker mailerz (did you mean mailers?)", "--default-queue: production.default_queue: names a queue that cannot be"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("problems:\n%v\nwant among them %s", err, want)
		}
	}
}

func TestProblemsBetweenValuesAreWhereTheValueComesFrom(t *testing.T) {
	t.Parallel()
	s := good("lists_of_aliases.yml")
	s.Lookup = func(name string) (string, bool) { return "a,a,,scheduler", name == "POSTBURNER_QUEUES" }
	_, err := config.Load(s)
	want := `POSTBURNER_QUEUES: production.workers.default.queues: is empty as item 3, want text`
	if err == nil || err.Error() != want {
		t.Errorf("problems:\n%v\nwant\n%s", err, want)
	}
	s.Lookup = func(name string) (string, bool) { return "a,a,scheduler", name == "POSTBURNER_QUEUES" }
	_, err = config.Load(s)
	want = `POSTBURNER_QUEUES: production.workers.default.queues: names a twice
POSTBURNER_QUEUES: production.workers.default.queues: names scheduler, the queue of the watchdog, which must hold nothing else; take it out, or name another scheduler_queue`
	if err == nil || err.Error() != want {
		t.Errorf("problems:\n%v\nwant\n%s", err, want)
	}
}

func TestVariablesAreText(t *testing.T) {
	t.Parallel()
	s := good("variables.yml")
	s.Lookup = func(name string) (string, bool) {
		value, ok := map[string]string{"URL": "beanstalk://\xff", "SET_TO_FOUR": "4", "POSTBURNER_LOG_LEVEL": "\xfe"}[name]
		return value, ok
	}
	_, err := config.Load(s)
	want := "POSTBURNER_LOG_LEVEL: production.log.level: is not text in UTF-8\n" +
		"testdata/good/variables.yml:2:18: production.beanstalk_url: takes the variable URL, which is not text in UTF-8"
	if err == nil || err.Error() != want {
		t.Errorf("problems:\n%v\nwant\n%s", err, want)
	}
}

func TestAnEnvironmentIsPartOfATubesName(t *testing.T) {
	t.Parallel()
	_, err := config.Load(config.Source{NoFile: true, Environment: "my laptop", Lookup: variables})
	want := `without a file: environment "my laptop" cannot be part of a tube's name; name it with letters, digits and - + / ; . $ _ ( )`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestAFileThatIsTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	write := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var multiplied strings.Builder
	multiplied.WriteString("production:\n  workers:\n    default: &w {forks: 1, threads: 1, timeout: 1, gc_limit: 1, boot_timeout: 1, max_runtime: 1, shutdown_timeout: 1}\n")
	for i := range 20_000 {
		fmt.Fprintf(&multiplied, "    w%d: *w\n", i)
	}
	for want, path := range map[string]string{
		"has more than 1048576 bytes": write("large.yml", "production:"+strings.Repeat(" ", 1<<20)),
		"has more than 100000 keys":   write("multiplied.yml", multiplied.String()),
	} {
		_, err := config.Load(config.Source{Path: path, Environment: "production", Lookup: variables})
		if err == nil || strings.Count(err.Error(), want) != 1 || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %.500v, want one problem: %s", err, want)
		}
	}
}
