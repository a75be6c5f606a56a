package job_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postburner/postburner/job"
)

func pointer[T any](v T) *T { return &v }

func TestDecode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body string
		want job.Envelope
	}{
		"every key of the wire format": {
			`{"job_class":"A","job_id":"x","queue_name":"q","arguments":[{"n":1}],"priority":7,"ttr":90,"retry_count":2,"executions":3,
			  "enqueued_at":"2026-12-01T04:43:33Z","scheduled_at":"2026-12-01T05:43:33.5+01:00","tracked":true,"max_retries":4,
			  "expires_at":"2026-12-02T00:00:00Z","schedule":{"name":"nightly","run_at":"2026-12-01T00:00:00Z"},"metadata":{"traceparent":"00"}}`,
			job.Envelope{
				Kind: "A", ID: "x", Queue: "q", Arguments: json.RawMessage(`[{"n":1}]`), Priority: pointer(uint32(7)), TTR: pointer(90), RetryCount: 2, Executions: 3,
				EnqueuedAt: time.Date(2026, 12, 1, 4, 43, 33, 0, time.UTC), ScheduledAt: time.Date(2026, 12, 1, 4, 43, 33, 5e8, time.UTC), Tracked: true, MaxRetries: pointer(4),
				ExpiresAt: time.Date(2026, 12, 2, 0, 0, 0, 0, time.UTC), Schedule: &job.Schedule{Name: "nightly", RunAt: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)},
				Metadata: map[string]string{"traceparent": "00"},
			},
		},
		"null counts as absent, arguments as empty": {
			`{"job_class":"A","priority":null,"ttr":null,"max_retries":null,"arguments":null,"tracked":null,"expires_at":null,"schedule":null}`,
			job.Envelope{Kind: "A", Arguments: json.RawMessage(`[]`)},
		},
		"unknown keys are kept": {
			`{"job_class":"A","locale":"en","exception_executions":{}}`,
			job.Envelope{Kind: "A", Arguments: json.RawMessage(`[]`), Extra: map[string]json.RawMessage{"locale": json.RawMessage(`"en"`), "exception_executions": json.RawMessage(`{}`)}},
		},
		"a key that only informs is kept if its type is wrong": {
			`{"job_class":"A","priority":"high","enqueued_at":1.5,"metadata":[1]}`,
			job.Envelope{Kind: "A", Arguments: json.RawMessage(`[]`), Extra: map[string]json.RawMessage{"priority": json.RawMessage(`"high"`), "enqueued_at": json.RawMessage(`1.5`), "metadata": json.RawMessage(`[1]`)}},
		},
		"a legacy job": {`{"class":"Heartbeat","args":[123]}`, job.Envelope{Kind: "Heartbeat", Arguments: json.RawMessage(`[123]`), Legacy: true}},
		"job_class before class": {
			`{"class":"B","args":[1],"job_class":"A","arguments":[2]}`,
			job.Envelope{Kind: "A", Arguments: json.RawMessage(`[2]`), Extra: map[string]json.RawMessage{"class": json.RawMessage(`"B"`), "args": json.RawMessage(`[1]`)}},
		},
		"the last of repeated keys": {`{"job_class":"A","job_class":"B"}`, job.Envelope{Kind: "B", Arguments: json.RawMessage(`[]`)}},
		"escaped keys and text":     {`{"job\u005fclass":"Gr\u00fc\u00dfe"}`, job.Envelope{Kind: "Grüße", Arguments: json.RawMessage(`[]`)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := job.Decode([]byte(c.body))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&c.want, got); diff != "" {
				t.Errorf("Decode (- want, + got):\n%s", diff)
			}
		})
	}
}

func TestABodyThatIsNoJobSaysWhy(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		``:                                       `malformed job: the body is empty: ""`,
		`[1]`:                                    `malformed job: the body is not a JSON object (byte 1): "[1]"`,
		`null`:                                   `is not a JSON object`,
		`{"job_class":"A"`:                       `want a comma or the end of the object (byte 17)`,
		`{"job_class":"A"} x`:                    `has something behind its end (byte 19)`,
		`{"job_class":"A",}`:                     `want a key (byte 18)`,
		`{"job_class":tru}`:                      `want true`,
		"{\"job_class\":\"A\x01\"}":              `a control character in a string`,
		`{"job_class":"\x"}`:                     `an unknown escape`,
		`{"a":01,"job_class":"A"}`:               `want a comma or the end of the object`,
		`{"a":1.,"job_class":"A"}`:               `want a digit`,
		`{}`:                                     `names no kind`,
		`{"job_class":""}`:                       `names no kind`,
		`{"job_class":7}`:                        `has a job_class that is not a string`,
		`{"class":7}`:                            `has a class that is not a string`,
		`{"job_class":"A","arguments":{}}`:       `has arguments that are not an array`,
		`{"class":"A","args":5}`:                 `has arguments that are not an array`,
		`{"job_class":"A","tracked":"yes"}`:      `has a tracked that is neither true nor false`,
		`{"job_class":"A","max_retries":-1}`:     `has a max_retries that is not a whole number`,
		`{"job_class":"A","retry_count":1.5}`:    `has a retry_count that is not a whole number`,
		`{"job_class":"A","expires_at":"soon"}`:  `has a expires_at that is not a time in RFC 3339`,
		`{"job_class":"A","schedule":"nightly"}`: `has a schedule that is not {name, run_at}`,
		`{"a":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`: `nests deeper than 512 levels`,
	} {
		_, err := job.Decode([]byte(body))
		if malformed := new(job.MalformedError); !errors.As(err, &malformed) || !strings.Contains(err.Error(), want) {
			t.Errorf("Decode(%.40q) = %v, want %s", body, err, want)
		}
		if err != nil && len(err.Error()) > 400 {
			t.Errorf("Decode(%.40q): the message has %d bytes", body, len(err.Error()))
		}
	}
}

func TestWhatRailsWroteIsWrittenBackAlike(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/activejob/*.json")
	if err != nil || len(files) != 10 {
		t.Fatalf("%d fixtures, %v", len(files), err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		e, err := job.Decode(body)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		again, err := e.Encode()
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		var before, after map[string]any
		if err := errors.Join(json.Unmarshal(body, &before), json.Unmarshal(again, &after)); err != nil {
			t.Fatal(err)
		}
		for key, value := range before {
			if value == nil && after[key] == nil { // null counts as absent
				continue
			}
			if !reflect.DeepEqual(value, after[key]) {
				t.Errorf("%s: %s was %v and is %v", file, key, value, after[key])
			}
		}
	}
}

func TestEncodeRefusesWhatIsNotJSON(t *testing.T) {
	t.Parallel()
	e := job.Envelope{Kind: "A", Arguments: json.RawMessage(`[}`)}
	if body, err := e.Encode(); err == nil || !strings.Contains(err.Error(), "arguments") {
		t.Errorf("Encode = %s, %v, want an error that names the arguments", body, err)
	}
}

// FuzzDecode compares with encoding/json, and wants what was decoded to survive its encoding.
func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob("testdata/activejob/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	for _, seed := range []string{`{"class":"A","args":[1]}`, `{"job_class":"A","x":-0.5e+10}`, `{"job_class":"\ud800"}`, `{"a":[[]],"job_class":"A"}`, "{\"job_class\":\"\xff\"}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		e, err := job.Decode(body)
		var object map[string]json.RawMessage
		isObject := json.Unmarshal(body, &object) == nil && object != nil
		if err == nil && !isObject {
			t.Fatalf("decoded what encoding/json does not take for an object: %q", body)
		}
		if err != nil {
			if malformed := new(job.MalformedError); !errors.As(err, &malformed) {
				t.Fatalf("error of type %T", err)
			}
			if isObject && strings.Contains(err.Error(), "is not valid JSON") {
				t.Fatalf("refused what encoding/json takes: %q: %v", body, err)
			}
			return
		}
		once, err := e.Encode()
		if err != nil {
			t.Fatalf("decoded %q, but: %v", body, err)
		}
		back, err := job.Decode(once)
		if err != nil {
			t.Fatalf("%q became %q: %v", body, once, err)
		}
		twice, err := back.Encode()
		if err != nil || string(once) != string(twice) {
			t.Fatalf("%q became %q and then %q (%v)", body, once, twice, err)
		}
		_, _ = e.PlainArguments() // may fail on what is no array of Ruby's, never panic
		var into struct {
			A any
			B string
		}
		_ = e.Bind(&into) // likewise
	})
}

func BenchmarkDecode(b *testing.B) {
	body := []byte(`{"job_class":"SendEmail","job_id":"01990000-0000-7000-8000-000000000001","queue_name":"default","arguments":[{"user_id":7,"template":"welcome"}],"retry_count":0,"executions":0,"enqueued_at":"2026-12-01T00:00:00Z"}`)
	b.Run("Decode", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			if _, err := job.Decode(body); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding/json", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			var e struct {
				JobClass   string          `json:"job_class"`
				JobID      string          `json:"job_id"`
				QueueName  string          `json:"queue_name"`
				Arguments  json.RawMessage `json:"arguments"`
				RetryCount int             `json:"retry_count"`
				Executions int             `json:"executions"`
				EnqueuedAt time.Time       `json:"enqueued_at"`
			}
			if err := json.Unmarshal(body, &e); err != nil {
				b.Fatal(err)
			}
		}
	})
	e, err := job.Decode(body)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("Bind", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			var a struct {
				UserID   int    `json:"user_id"`
				Template string `json:"template"`
			}
			if err := e.Bind(&a); err != nil {
				b.Fatal(err)
			}
		}
	})
}
