package app

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestADurationIsSecondsOrText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		`90`: 90 * time.Second, `0.5`: 500 * time.Millisecond, `"90"`: 90 * time.Second, `"1m30s"`: 90 * time.Second, `"-2s"`: -2 * time.Second, `0`: 0,
	} {
		var got seconds
		if err := json.Unmarshal([]byte(text), &got); err != nil || time.Duration(got) != want {
			t.Errorf("%s is %v, %v; want %v", text, time.Duration(got), err, want)
		}
	}
	for _, text := range []string{`"soon"`, `true`, `[1]`, `1e300`, `""`} {
		var got seconds
		if err := json.Unmarshal([]byte(text), &got); err == nil {
			t.Errorf("%s is %v, want an error", text, time.Duration(got))
		}
	}
}

func TestWhatALineDoesNotSayIsTheFlags(t *testing.T) {
	t.Parallel()
	parse := func(text string) jobSpec {
		var s jobSpec
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	const all = `{"kind":"A","args":{"n":1},"queue":"q","delay":5,"priority":1,"ttr":60,"max_retries":2,"tracked":true,"expires_at":"2040-01-01T00:00:00Z","metadata":{"a":"1","b":"2"},"job_id":"x"}`
	for name, test := range map[string]struct{ line, want string }{
		"nothing said":      {`{}`, all},
		"everything said":   {`{"kind":"B","args":{"n":2},"queue":"r","delay":6,"priority":0,"ttr":61,"max_retries":0,"tracked":false,"expires_at":"2041-01-01T00:00:00Z","metadata":{"a":"3","b":"4"},"job_id":"y"}`, `{"kind":"B","args":{"n":2},"queue":"r","delay":6,"priority":0,"ttr":61,"max_retries":0,"tracked":false,"expires_at":"2041-01-01T00:00:00Z","metadata":{"a":"3","b":"4"},"job_id":"y"}`},
		"a time in place":   {`{"at":"2040-01-01T00:00:00Z"}`, `{"kind":"A","args":{"n":1},"queue":"q","at":"2040-01-01T00:00:00Z","priority":1,"ttr":60,"max_retries":2,"tracked":true,"expires_at":"2040-01-01T00:00:00Z","metadata":{"a":"1","b":"2"},"job_id":"x"}`},
		"some metadata":     {`{"metadata":{"b":"3","c":"4"}}`, `{"kind":"A","args":{"n":1},"queue":"q","delay":5,"priority":1,"ttr":60,"max_retries":2,"tracked":true,"expires_at":"2040-01-01T00:00:00Z","metadata":{"a":"1","b":"3","c":"4"},"job_id":"x"}`},
		"a delay of none":   {`{"delay":0}`, `{"kind":"A","args":{"n":1},"queue":"q","delay":0,"priority":1,"ttr":60,"max_retries":2,"tracked":true,"expires_at":"2040-01-01T00:00:00Z","metadata":{"a":"1","b":"2"},"job_id":"x"}`},
		"null says nothing": {`{"delay":null,"priority":null,"metadata":null}`, all},
	} {
		standard := parse(all)
		if diff := cmp.Diff(parse(test.want), parse(test.line).or(standard)); diff != "" {
			t.Errorf("%s (- want, + got):\n%s", name, diff)
		}
		if diff := cmp.Diff(parse(all), standard); diff != "" {
			t.Errorf("%s has changed what the next line starts from:\n%s", name, diff)
		}
	}
}
