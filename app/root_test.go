package app

import (
	"bytes"
	"strings"
	"testing"

	"github.com/postburner/postburner/job"
)

func TestEveryCommandExplainsItselfWithAnExample(t *testing.T) {
	t.Parallel()
	begins := map[string]string{"completion": "Generate the autocompletion script"} // cobra's own
	p := &program{Options: Options{Registry: job.NewRegistry()}}
	for _, cmd := range p.root().Commands() {
		if !cmd.Hidden {
			begins[cmd.Name()] = cmd.Long
		}
	}
	for name, long := range begins {
		var help bytes.Buffer
		if code := Run(t.Context(), Options{Args: []string{name, "--help"}, Stdout: &help, Stderr: &help}); code != ExitOK {
			t.Errorf("%s --help: exit code %d, want 0", name, code)
		}
		if long == "" || !strings.HasPrefix(help.String(), long) {
			t.Errorf("%s --help does not begin with what the command does:\n%s", name, help.String())
		}
		if !strings.Contains(help.String(), "\nExamples:\n  postburner "+name) {
			t.Errorf("%s --help has no example:\n%s", name, help.String())
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
