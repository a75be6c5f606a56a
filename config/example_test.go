package config_test

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"

	"github.com/postburner/postburner/config"
)

// TestTheExampleIsCompleteAndGood loads postburner.yml.example for each of its
// environments and looks for every key of the schema in it.
func TestTheExampleIsCompleteAndGood(t *testing.T) {
	t.Parallel()
	const example = "../postburner.yml.example"
	for _, environment := range []string{"development", "test", "production"} {
		c := load(t, config.Source{Path: example, Environment: environment, Worker: "default"})
		if environment == "development" != (c.BeanstalkURL == config.Embedded) {
			t.Errorf("%s uses %s", environment, c.BeanstalkURL)
		}
	}
	text, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := config.Schema()
	if err != nil {
		t.Fatal(err)
	}
	var root any
	if err := json.Unmarshal(schema, &root); err != nil {
		t.Fatal(err)
	}
	var walk func(node any)
	walk = func(node any) {
		object, ok := node.(map[string]any)
		if !ok {
			return
		}
		if properties, ok := object["properties"].(map[string]any); ok {
			for key, value := range properties {
				if !regexp.MustCompile(`[\s{]` + key + ":").Match(text) {
					t.Errorf("postburner.yml.example does not mention %s", key)
				}
				walk(value)
			}
		}
		walk(object["additionalProperties"])
	}
	walk(root)
}
