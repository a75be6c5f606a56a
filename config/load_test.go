package config_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/postburner/postburner/config"
	"github.com/postburner/postburner/retry"
)

var update = flag.Bool("update", false, "write the messages of testdata/bad as they are now")

// variables are those that the files of testdata may use.
func variables(name string) (string, bool) {
	value, ok := map[string]string{"SET_TO_FOUR": "4", "SET_TO_WORDS": "some words"}[name]
	return value, ok
}

// TestEveryMistakeHasItsMessage loads one file for each mistake and wants exactly the
// problems that stand beside it.
func TestEveryMistakeHasItsMessage(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/bad/*.yml")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d files of mistakes, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yml"), func(t *testing.T) {
			t.Parallel()
			_, err := config.Load(config.Source{Path: file, Environment: "production", Lookup: variables})
			if err == nil {
				t.Fatal("no problem was found")
			}
			got := err.Error() + "\n"
			golden := strings.TrimSuffix(file, ".yml") + ".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("problems (- want, + got):\n%s", diff)
			}
		})
	}
}

func load(t *testing.T, s config.Source) *config.Config {
	t.Helper()
	if s.Lookup == nil {
		s.Lookup = variables
	}
	c, err := config.Load(s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func good(name string) config.Source {
	return config.Source{Path: "testdata/good/" + name, Environment: "production"}
}

func TestAnchorsMergeAndWhatStandsThereWins(t *testing.T) {
	t.Parallel()
	c := load(t, good("anchors.yml"))
	if c.DefaultQueue != "base" || c.DefaultTTR != 90*time.Second || c.Retry.MaxRetries != 1 {
		t.Errorf("queue %s, TTR %v, retries %d; want base, 1m30s, 1", c.DefaultQueue, c.DefaultTTR, c.Retry.MaxRetries)
	}
	if c.Worker.ShutdownTimeout != 90*time.Second {
		t.Errorf("shutdown_timeout is %v, want default_ttr", c.Worker.ShutdownTimeout)
	}
	s := good("anchors.yml")
	s.Worker = "mailers"
	if c := load(t, s); c.Worker.Threads != 3 || !cmp.Equal(c.Tubes(), []string{"postburner.production.mailers"}) {
		t.Errorf("mailers: %d threads on %v", c.Worker.Threads, c.Tubes())
	}
	c = load(t, good("merged_list.yml"))
	if c.DefaultQueue != "one" || c.DefaultTTR != 11*time.Second || c.DefaultPriority != 22 {
		t.Errorf("queue %s, TTR %v, priority %d; want one, 11s, 22", c.DefaultQueue, c.DefaultTTR, c.DefaultPriority)
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	c := load(t, good("byte_order_mark.yml"))
	c.Sources = nil
	want := &config.Config{
		File: "testdata/good/byte_order_mark.yml", Environment: "production", WorkerName: "default",
		BeanstalkURL: "beanstalk://127.0.0.1:11300", DefaultQueue: "default", DefaultPriority: 65536, DefaultTTR: 300 * time.Second,
		Scheduler: config.Scheduler{Queue: "scheduler", Interval: 300 * time.Second, Priority: 100}, Retry: retry.Default(),
		Log: config.Log{Level: "info", Format: "text"}, Handlers: map[string]config.Handler{},
		Worker: config.Worker{Queues: []string{"default"}, Threads: 10, Timeout: 3 * time.Second, ShutdownTimeout: 300 * time.Second, BootTimeout: 30 * time.Second, LivenessTimeout: 60 * time.Second, PoisonDeaths: 3, PoisonReserves: 10},
	}
	if diff := cmp.Diff(want, c, cmpopts.IgnoreUnexported(config.Config{})); diff != "" {
		t.Errorf("defaults (- want, + got):\n%s", diff)
	}
}

func TestVariablesInValuesAreExpandedAndTyped(t *testing.T) {
	t.Parallel()
	c := load(t, good("variables.yml"))
	if c.BeanstalkURL != "beanstalk://10.0.0.1:9" || c.DefaultQueue != "pay$me" || c.Worker.Forks != 4 {
		t.Errorf("URL %s, queue %s, forks %d", c.BeanstalkURL, c.DefaultQueue, c.Worker.Forks)
	}
}

func TestFlagBeforeVariableBeforeFileBeforeDefault(t *testing.T) {
	t.Parallel()
	s := good("anchors.yml") // says threads: 3
	s.Flags = map[string]string{"threads": "5", "log.level": "debug"}
	s.Lookup = func(name string) (string, bool) {
		value, ok := map[string]string{
			"POSTBURNER_THREADS": "4", "POSTBURNER_FORKS": "2", "POSTBURNER_QUEUES": "x, y", "POSTBURNER_RETRY_BASE": "7s", "POSTBURNER_LOG_LEVEL": "warn", "POSTBURNER_TIMEOUT": "",
		}[name]
		return value, ok
	}
	c := load(t, s)
	if c.Worker.Threads != 5 || c.Worker.Forks != 2 || c.Retry.Base != 7*time.Second || c.Log.Level != "debug" || c.Worker.Timeout != 3*time.Second || c.Retry.MaxRetries != 1 {
		t.Errorf("threads %d, forks %d, base %v, level %s, timeout %v, retries %d", c.Worker.Threads, c.Worker.Forks, c.Retry.Base, c.Log.Level, c.Worker.Timeout, c.Retry.MaxRetries)
	}
	if !cmp.Equal(c.Worker.Queues, []string{"x", "y"}) {
		t.Errorf("queues %v, want x and y", c.Worker.Queues)
	}
	s.Flags = map[string]string{"threads": "many"}
	s.Lookup = func(name string) (string, bool) { return "-1", name == "POSTBURNER_FORKS" }
	_, err := config.Load(s)
	want := "--threads: production.workers.default.threads: is \"many\", want a whole number from 1 to 10000\nPOSTBURNER_FORKS: production.workers.default.forks: is -1, want a whole number from 0 to 1000"
	if err == nil || err.Error() != want {
		t.Errorf("problems of flags and variables:\n%v\nwant\n%s", err, want)
	}
}

func TestTheFileIsLookedForInItsPlaces(t *testing.T) {
	t.Chdir(t.TempDir())
	c := load(t, config.Source{})
	if c.Environment != "development" || c.BeanstalkURL != config.Embedded || c.File != "" {
		t.Errorf("without a file: %s, %s, %q", c.Environment, c.BeanstalkURL, c.File)
	}
	_, err := config.Load(config.Source{Environment: "production", Lookup: variables})
	if want := "config/postburner.yml or postburner.yml: is not there, and environment production needs it; write one, or name it with --config"; err == nil || err.Error() != want {
		t.Errorf("without a file in production: %v, want %s", err, want)
	}
	_, err = config.Load(config.Source{Path: "nowhere.yml", Lookup: variables})
	if want := "nowhere.yml: cannot be read: there is no such file; name a file with --config"; err == nil || err.Error() != want {
		t.Errorf("a named file that is not there: %v, want %s", err, want)
	}
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("postburner.yml", "test: {default_queue: top}\n")
	environment := func(name string) (string, bool) { return "test", name == "POSTBURNER_ENV" }
	if c := load(t, config.Source{Lookup: environment}); c.DefaultQueue != "top" || c.Environment != "test" {
		t.Errorf("queue %s in %s, want top in test", c.DefaultQueue, c.Environment)
	}
	if err := os.Mkdir("config", 0o700); err != nil {
		t.Fatal(err)
	}
	write("config/postburner.yml", "test: {default_queue: below}\n")
	if c := load(t, config.Source{Lookup: environment}); c.DefaultQueue != "below" {
		t.Errorf("queue %s, want that of config/postburner.yml", c.DefaultQueue)
	}
}

func TestAConfigurationTravelsAsJSON(t *testing.T) {
	t.Parallel()
	c := load(t, good("anchors.yml"))
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var back config.Config
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, &back, cmpopts.IgnoreUnexported(config.Config{})); diff != "" {
		t.Errorf("there and back:\n%s", diff)
	}
}
