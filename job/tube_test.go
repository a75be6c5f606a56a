package job_test

import (
	"testing"

	"github.com/postburner/postburner/job"
)

func TestATubeIsNamedByItsEnvironmentAndQueue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ environment, queue, want string }{
		{"production", "mailers", "postburner.production.mailers"},
		{"test", "a.b", "postburner.test.a.b"},
		{"not ok", "", "postburner.not ok."}, // nothing is checked
	} {
		if got := job.Tube(c.environment, c.queue); got != c.want {
			t.Errorf("Tube(%q, %q) = %q, want %q", c.environment, c.queue, got, c.want)
		}
	}
}
