//go:build unix

package integration_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postburner/postburner/broker/brokertest"
	"github.com/postburner/postburner/client"
	"github.com/postburner/postburner/internal/testwait"
	"github.com/postburner/postburner/job"
)

// The jobs that a Rails application serialised. SendEmail takes both its positional
// and its keyword shape, in the order in which a Ruby method would declare them.
type (
	SendEmail struct {
		Greeting string       `json:"greeting,omitzero"`
		Subject  string       `json:"subject,omitzero"`
		Account  int64        `json:"account,omitzero"`
		UserID   int          `json:"user_id,omitzero"`
		Template string       `json:"template,omitzero"`
		A        int          `json:"a,omitzero"`
		At       time.Time    `json:"at,omitzero"`
		On       job.Date     `json:"on,omitzero"`
		Dur      job.Duration `json:"dur,omitzero"`
		Big      string       `json:"big,omitzero"`
		Opts     struct {
			Nested []any `json:"nested,omitzero"`
		} `json:"opts,omitzero"`
	}
	ResizeImage struct {
		Image any    `json:"image"`
		Size  string `json:"size"`
	}
	Urgent struct {
		Why string `json:"why"`
	}
)

func (SendEmail) Kind() string   { return "SendEmail" }
func (ResizeImage) Kind() string { return "ResizeImage" }
func (Urgent) Kind() string      { return "Urgent" }

// activeJobHandlers record the values that the handlers were given.
func activeJobHandlers(r *job.Registry, book *journal) {
	job.Handle(r, func(ctx context.Context, a SendEmail) error { return book.writeValue(ctx, a) })
	job.Handle(r, func(ctx context.Context, a ResizeImage) error { return book.writeValue(ctx, a) })
	job.Handle(r, func(ctx context.Context, a Urgent) error { return book.writeValue(ctx, a) })
}

func (b *journal) writeValue(ctx context.Context, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	b.write(ctx, "start", 0, string(text))
	return nil
}

func TestJobsThatRailsSerialisedReachTypedHandlers(t *testing.T) {
	want := map[string]string{
		"globalid_and_symbol":     `{"image":"gid://shop/User/99","size":"thumb"}`,
		"indifferent":             `{"a":1}`,
		"keywords":                `{"user_id":7,"template":"welcome"}`,
		"no_arguments":            `{"why":""}`,
		"positional":              `{"image":42,"size":"large"}`,
		"priority_and_queue":      `{"why":"x"}`,
		"serialized_values":       `{"at":"2026-03-01T12:30:15.25Z","on":"2026-03-01","dur":5400,"big":"0.125e2"}`,
		"string_hash":             `{"user_id":7,"template":"welcome"}`,
		"symbol_hash_nested":      `{"user_id":7,"opts":{"nested":[1,2.5,null,true]}}`,
		"unicode_and_big_integer": `{"greeting":"Grüße 🌍","subject":"a\u2028b","account":9007199254740993}`,
	}
	server := brokertest.StartBeanstalkd(t)
	w := startWorker(t, workerOptions{URL: server.URL(), Forks: 1, Threads: 2})
	c := dialRaw(t, server.Addr())
	files, err := filepath.Glob("../job/testdata/activejob/*.json")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{} // by job_id
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var head struct {
			JobID string `json:"job_id"`
		}
		if err := json.Unmarshal(body, &head); err != nil {
			t.Fatal(err)
		}
		names[head.JobID] = strings.TrimSuffix(filepath.Base(file), ".json")
		c.put(tube, 65536, 0, 60, string(body))
	}
	testwait.Until(t, func() (bool, string) { return c.jobs(tube) == 0, fmt.Sprintf("%d jobs left", c.jobs(tube)) })
	got := map[string]string{}
	for _, e := range w.entries("start") {
		got[names[e.JobID]] = e.Note
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("values in the handlers (- want, + got):\n%s", diff)
	}
	w.stop()
}

func TestABodyOfTheGoClientHasTheKeysOfTheWireFormat(t *testing.T) {
	server := brokertest.StartBeanstalkd(t)
	enqueuer, err := client.New(client.Options{URL: server.URL(), Environment: environment})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = enqueuer.Close() }()
	at := time.Now().Add(time.Hour)
	receipt, err := enqueuer.Enqueue(t.Context(), SendEmail{UserID: 7, Template: "Grüße <b>"},
		client.Queue("mailers"), client.At(at), client.Priority(3), client.TTR(90*time.Second), client.MaxRetries(2),
		client.ExpiresAt(at.Add(time.Hour)), client.Tracked(), client.Metadata("traceparent", "00-ab-cd-01"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "postburner.production.mailers"; receipt.Tube != want {
		t.Errorf("receipt names tube %s, want %s", receipt.Tube, want)
	}
	c := dialRaw(t, server.Addr())
	stats := c.stats("stats-job %d", receipt.BeanstalkID)
	for key, want := range map[string]string{"tube": receipt.Tube, "state": "delayed", "pri": "3", "ttr": "90"} {
		if stats[key] != want {
			t.Errorf("stats-job %s is %s, want %s", key, stats[key], want)
		}
	}
	var body map[string]any
	if err := json.Unmarshal([]byte(c.body(c.command("peek %d", receipt.BeanstalkID))), &body); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"enqueued_at", "scheduled_at", "expires_at"} {
		text, _ := body[key].(string)
		moment, err := time.Parse(time.RFC3339Nano, text)
		if err != nil || !strings.HasSuffix(text, "Z") {
			t.Errorf("%s is %v, want RFC 3339 in UTC", key, body[key])
		}
		if key == "scheduled_at" && !moment.Truncate(time.Second).Equal(at.UTC().Truncate(time.Second)) {
			t.Errorf("scheduled_at is %s, want %s", moment, at.UTC())
		}
		delete(body, key)
	}
	want := map[string]any{
		"job_class": "SendEmail", "job_id": receipt.JobID, "queue_name": "mailers",
		"arguments": []any{map[string]any{"user_id": 7.0, "template": "Grüße <b>"}},
		"priority":  3.0, "ttr": 90.0, "retry_count": 0.0, "executions": 0.0, "tracked": true, "max_retries": 2.0,
		"metadata": map[string]any{"traceparent": "00-ab-cd-01"},
	}
	if diff := cmp.Diff(want, body); diff != "" {
		t.Errorf("body of the Go client (- want, + got):\n%s", diff)
	}
}
