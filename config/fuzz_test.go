package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/postburner/postburner/config"
)

// FuzzLoad wants of any file that it is read to an end, and that what was
// understood can be shown, and read again.
func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"testdata/bad/*.yml", "testdata/good/*.yml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	path := filepath.Join(f.TempDir(), "fuzz.yml")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(config.Source{Path: path, Environment: "production", Lookup: variables})
		if err != nil {
			return
		}
		shown, err := c.Effective()
		if err != nil {
			t.Fatalf("loaded, but cannot be shown: %v", err)
		}
		if err := os.WriteFile(path, shown, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := config.Load(config.Source{Path: path, Environment: "production", Worker: c.WorkerName, Lookup: variables}); err != nil {
			t.Errorf("what is shown cannot be loaded: %v\n%s", err, shown)
		}
	})
}
