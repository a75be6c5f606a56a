package app

import (
	"bytes"
	"strings"
	"testing"

	"github.com/postburner/postburner/job"
)

func TestEveryCommandExplainsItselfWithAnExample(t *testing.T) {
	t.Parallel()
	p := &program{Options: Options{Registry: job.NewRegistry()}}
	for _, cmd := range p.root().Commands() {
		if cmd.Hidden {
			continue
		}
		var help bytes.Buffer
		if code := Run(t.Context(), Options{Args: []string{cmd.Name(), "--help"}, Stdout: &help, Stderr: &help}); code != ExitOK {
			t.Errorf("%s --help: exit code %d, want 0", cmd.Name(), code)
		}
		if cmd.Long == "" || !strings.HasPrefix(help.String(), cmd.Long) {
			t.Errorf("%s --help does not begin with what the command does:\n%s", cmd.Name(), help.String())
		}
		if !strings.Contains(help.String(), "\nExamples:\n  postburner "+cmd.Name()) {
			t.Errorf("%s --help has no example:\n%s", cmd.Name(), help.String())
		}
	}
}

func TestTheExampleConfigurationIsReadyToRun(t *testing.T) {
	t.Parallel()
	for _, environment := range []string{"development", "test", "production"} {
		var out, complaints bytes.Buffer
		code := Run(t.Context(), Options{
			Args: []string{"check", "--config", "../postburner.yml.example", "--env", environment}, Stdout: &out, Stderr: &complaints,
			LookupEnv: func(string) (string, bool) { return "", false },
		})
		if code != ExitOK {
			t.Errorf("%s: exit code %d: %s", environment, code, complaints.String())
		}
	}
}
