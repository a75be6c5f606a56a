package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/postburner/postburner/config"
)

func TestEffectiveSaysWhereEachValueComesFromAndMasksSecrets(t *testing.T) {
	t.Parallel()
	s := good("anchors.yml")
	s.Flags = map[string]string{"beanstalk_url": "beanstalks://:hunter2@queue.internal"}
	text, err := load(t, s).Effective()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"beanstalk_url: beanstalks://:xxxxx@queue.internal # --beanstalk-url\n", "default_queue: base # testdata/good/anchors.yml:2\n",
		"default_priority: 65536 # default\n", "threads: 3 # testdata/good/anchors.yml:9\n", "queues: [a, b] # testdata/good/anchors.yml:9\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the effective configuration lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "hunter2") {
		t.Errorf("the effective configuration shows a secret:\n%s", text)
	}
	// It is a configuration itself, and says the same.
	path := filepath.Join(t.TempDir(), "effective.yml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	again := load(t, config.Source{Path: path, Environment: "production"})
	if again.Worker.Threads != 3 || again.DefaultTTR != 90*time.Second {
		t.Errorf("read again: %d threads, TTR %v", again.Worker.Threads, again.DefaultTTR)
	}
}

func TestEffectiveMasksURLsInArguments(t *testing.T) {
	t.Parallel()
	text, err := load(t, good("handlers.yml")).Effective()
	if err != nil {
		t.Fatal(err)
	}
	want := `exec: [bin/resize, '--store=s3://key:xxxxx@bucket/a', 'mailto:me@example.org'] # testdata/good/handlers.yml:4`
	if !strings.Contains(string(text), want) {
		t.Errorf("the effective configuration lacks %s:\n%s", want, text)
	}
}

func TestEffectiveShowsWhatIsAbsentAndWhatItsDefaultIs(t *testing.T) {
	t.Parallel()
	text, err := load(t, good("byte_order_mark.yml")).Effective()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"gc_limit: none # default\n", "memory_limit: none # default\n", "max_runtime: none # default\n",
		"shutdown_timeout: 5m # default: default_ttr\n", "queues: [default] # default: default_queue\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the effective configuration lacks %q:\n%s", want, text)
		}
	}
}

// TestEffectiveReadAgainIsTheSameConfiguration lets rapid choose what may look special to YAML
// or to the expansion of variables.
func TestEffectiveReadAgainIsTheSameConfiguration(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "effective.yml")
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.OneOf(
			rapid.StringMatching(`[$ {}a:#'"\n~<-]{1,8}`),
			rapid.SampledFrom([]string{"yes", "010", "null", "<<", "${HOME}", "$${HOME}", "$$$", "1e3", "2026-01-01", "!x", "&a", "*a", " ", "é"}),
		)
		queue := rapid.StringMatching(`[a$(/;.0+][a$.0]{0,5}`)
		c, err := config.Load(config.Source{NoFile: true, Environment: "production", Lookup: variables, Flags: map[string]string{
			"default_queue": queue.Draw(t, "default"), "memory_limit": rapid.SampledFrom([]string{"none", "1.5GiB", "16000001", "2TB"}).Draw(t, "memory"),
			"forks": "1", "max_runtime": rapid.SampledFrom([]string{"none", "90s", "1.5", "1h"}).Draw(t, "runtime"),
		}})
		if err != nil {
			t.Skip(err) // such as a queue 0, which is no text
		}
		for _, kind := range rapid.SliceOfN(word, 0, 3).Draw(t, "kinds") {
			if strings.TrimSpace(kind) != "" {
				c.Handlers[kind] = config.Handler{Exec: append([]string{"program"}, rapid.SliceOfN(word, 0, 3).Draw(t, "arguments")...)}
			}
		}
		text, err := c.Effective()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		again, err := config.Load(config.Source{Path: path, Environment: "production", Lookup: variables})
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if diff := cmp.Diff(c, again, cmpopts.IgnoreUnexported(config.Config{}), cmpopts.IgnoreFields(config.Config{}, "Sources", "File")); diff != "" {
			t.Fatalf("read again (- was, + is):\n%s\n%s", diff, text)
		}
	})
}
