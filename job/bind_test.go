package job_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postburner/postburner/job"
)

type resize struct {
	ID    int     `json:"id"`
	Size  string  `json:"size"`
	Skip  string  `json:"-"`
	Ratio float64 `json:"ratio"`
}

func bind[T any](t *testing.T, arguments string) (v T, err error) {
	t.Helper()
	e := job.Envelope{Kind: "A", Arguments: json.RawMessage(arguments)}
	err = e.Bind(&v)
	return v, err
}

func wantBound[T any](t *testing.T, arguments string, want T) {
	t.Helper()
	got, err := bind[T](t, arguments)
	if err != nil {
		t.Errorf("Bind(%s): %v", arguments, err)
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Bind(%s) (- want, + got):\n%s", arguments, diff)
	}
}

func TestBind(t *testing.T) {
	t.Parallel()
	wantBound(t, `[{"id":7,"size":"s"}]`, resize{ID: 7, Size: "s"})
	wantBound(t, `[]`, resize{})
	wantBound(t, `[7]`, resize{ID: 7})
	wantBound(t, `[7,"s"]`, resize{ID: 7, Size: "s"})
	wantBound(t, `[7,"s",0.5]`, resize{ID: 7, Size: "s", Ratio: 0.5}) // fields that JSON does not see have no place
	wantBound(t, `[7,{"size":"s","ratio":2,"_aj_ruby2_keywords":["size","ratio"]}]`, resize{ID: 7, Size: "s", Ratio: 2})
	wantBound(t, `[{"size":"s","_aj_ruby2_keywords":["size"]}]`, resize{Size: "s"})
	wantBound(t, `[1,2]`, []int{1, 2})
	wantBound(t, `[{"a":1}]`, []map[string]int{{"a": 1}})
	wantBound(t, `[{"a":1}]`, map[string]int{"a": 1})
	wantBound(t, `["x"]`, "x")
	wantBound(t, `[5]`, 5)
	wantBound(t, `[{"a":9007199254740993}]`, any(map[string]any{"a": json.Number("9007199254740993")}))
	wantBound(t, `[1,"b"]`, any([]any{json.Number("1"), "b"}))
	wantBound(t, `[{"a":1}]`, json.RawMessage(`{"a":1}`))
	wantBound(t, `[{"d":"2026-03-01","t":5400,"u":"1m","f":0.25}]`, struct {
		D job.Date     `json:"d"`
		T job.Duration `json:"t"`
		U job.Duration `json:"u"`
		F job.Duration `json:"f"`
	}{job.Date{Year: 2026, Month: 3, Day: 1}, job.Duration(90 * time.Minute), job.Duration(time.Minute), job.Duration(time.Second / 4)})
}

func TestBindSaysWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	for arguments, want := range map[string]string{
		`["x"]`:              "arguments of A: argument 1, field ID: a JSON string does not fit int",
		`[1,2]`:              "arguments of A: argument 2, field Size: a JSON number does not fit string",
		`[1,"s",2,3]`:        "there are 4 positional ones, job_test.resize has 3 fields for them",
		`[{"id":"x"}]`:       "arguments of A: field id: a JSON string does not fit int",
		`{"id":1}`:           "arguments of A: the array is not a JSON array",
		`[{"id":1}`:          "want a comma or the end of the array",
		`[{"_aj_globalid":]`: "want a value",
	} {
		if _, err := bind[resize](t, arguments); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Bind(%s) = %v, want %s", arguments, err, want)
		}
	}
	if _, err := bind[string](t, `["a","b"]`); err == nil || !strings.Contains(err.Error(), "there are 2, string takes one") {
		t.Errorf("two arguments for a string: %v", err)
	}
	e := job.Envelope{Kind: "A", Arguments: json.RawMessage(`[]`)}
	if err := e.Bind(resize{}); err == nil || !strings.Contains(err.Error(), "want a pointer") {
		t.Errorf("Bind to no pointer: %v", err)
	}
}

func TestPlainArgumentsHaveNoMarkers(t *testing.T) {
	t.Parallel()
	const serialized = `"_aj_serialized":"ActiveJob::Serializers::`
	for arguments, want := range map[string]string{
		`[]`:                       `[]`,
		`[{"a": 1}]`:               `{"a": 1}`, // as it was written
		`[1, "x"]`:                 `[1, "x"]`,
		`[{"a":1},{"b":2}]`:        `[{"a":1},{"b":2}]`,
		`[{"_aj_symbol_keys":[]}]`: `{}`,
		`[{"a":{"b":[{"_aj_globalid":"gid://x/User/1"}],"_aj_hash_with_indifferent_access":true},"_aj_symbol_keys":["a"]}]`:                         `{"a":{"b":["gid://x/User/1"]}}`,
		`[{` + serialized + `SymbolSerializer","value":"thumb"}]`:                                                                                   `["thumb"]`,
		`[{` + serialized + `ModuleSerializer","value":"User"},5]`:                                                                                  `["User",5]`,
		`[{` + serialized + `TimeWithZoneSerializer","value":"2026-03-01T12:00:00Z","time_zone":"UTC"}]`:                                            `["2026-03-01T12:00:00Z"]`,
		`[{"r":{` + serialized + `RangeSerializer","begin":1,"end":{` + serialized + `DateSerializer","value":"2026-01-01"},"exclude_end":false}}]`: `{"r":{"begin":1,"end":"2026-01-01","exclude_end":false}}`,
		`[{"n":9007199254740993,"t":"Grüße <b>","_aj_symbol_keys":["n"]}]`:                                                                          `{"n":9007199254740993,"t":"Grüße <b>"}`,
	} {
		e := job.Envelope{Kind: "A", Arguments: json.RawMessage(arguments)}
		got, err := e.PlainArguments()
		if err != nil || string(got) != want {
			t.Errorf("PlainArguments of %s = %s, %v, want %s", arguments, got, err, want)
		}
	}
}
