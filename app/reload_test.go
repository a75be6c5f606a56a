package app

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postburner/postburner/config"
)

func TestAReloadKeepsWhatIsTheParents(t *testing.T) {
	t.Parallel()
	old := &config.Config{BeanstalkURL: "beanstalk://a", Worker: config.Worker{Forks: 1, Threads: 2, ShutdownTimeout: time.Second, Timeout: time.Second}}
	for name, test := range map[string]struct {
		change func(c *config.Config)
		want   []string // kept
	}{
		"nothing":            {func(*config.Config) {}, nil},
		"another server":     {func(c *config.Config) { c.BeanstalkURL = "beanstalk://b" }, nil},
		"the embedded one":   {func(c *config.Config) { c.BeanstalkURL = config.Embedded }, []string{"beanstalk_url"}},
		"forks":              {func(c *config.Config) { c.Worker.Forks = 5 }, []string{"forks"}},
		"threads":            {func(c *config.Config) { c.Worker.Threads = 5 }, []string{"threads"}},
		"memory_limit":       {func(c *config.Config) { c.Worker.MemoryLimit = 5 }, []string{"memory_limit"}},
		"all the timeouts":   {func(c *config.Config) { w := &c.Worker; w.ShutdownTimeout, w.BootTimeout, w.LivenessTimeout = 5, 5, 5 }, []string{"shutdown_timeout", "boot_timeout", "liveness_timeout"}},
		"timeout of reserve": {func(c *config.Config) { c.Worker.Timeout = 5 }, nil},
	} {
		fresh := *old
		test.change(&fresh)
		wanted := fresh
		kept := keepParentSettings(old, &fresh)
		if diff := cmp.Diff(test.want, kept); diff != "" {
			t.Errorf("%s: kept (- want, + got):\n%s", name, diff)
		}
		if len(test.want) > 0 {
			wanted = *old
		}
		if diff := cmp.Diff(wanted.Worker, fresh.Worker); diff != "" || fresh.BeanstalkURL != wanted.BeanstalkURL {
			t.Errorf("%s: beanstalk_url is %s, want %s; worker (- want, + got):\n%s", name, fresh.BeanstalkURL, wanted.BeanstalkURL, diff)
		}
	}
}
