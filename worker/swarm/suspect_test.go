package swarm

import (
	"slices"
	"strings"
	"testing"
)

func TestSuspectsAreCountedByJob(t *testing.T) {
	t.Parallel()
	var s suspects
	a, b, other := Row{ID: 1, Key: 10}, Row{ID: 2, Key: 20}, Row{ID: 1, Key: 11} // the id of a, on another server
	s.accuse([]Row{a, b})
	s.accuse([]Row{a})
	got := s.accuse([]Row{a, other})
	want := []Suspect{{1, 10, 3, true}, {1, 11, 1, false}}
	if !slices.Equal(got, want) {
		t.Errorf("accused %+v, want %+v", got, want)
	}
	if all := append([]Suspect{{2, 20, 1, false}}, want...); !slices.Equal(s, all) {
		t.Errorf("suspects %+v, want %+v", s, all)
	}
	if none := s.accuse(nil); len(none) != 0 {
		t.Errorf("a child that ran nothing accuses %+v", none)
	}
	for i := range maxSuspects {
		s.accuse([]Row{{ID: uint64(100 + i)}})
	}
	if len(s) != maxSuspects || s[0].ID != 100 || s[maxSuspects-1].ID != 100+maxSuspects-1 {
		t.Errorf("%d suspects from %d on, want the latest %d", len(s), s[0].ID, maxSuspects)
	}
}

func TestSuspectsTravelAsACommand(t *testing.T) {
	t.Parallel()
	list := []Suspect{{1, 1<<64 - 1, 3, true}}
	line, err := encodeSuspects(list)
	if err != nil || strings.Count(line, "\n") != 1 {
		t.Fatalf("%q, %v", line, err)
	}
	if got, ok := decodeSuspects(strings.TrimSuffix(line, "\n")); !ok || !slices.Equal(got, list) {
		t.Errorf("%q is read as %+v, %v", line, got, ok)
	}
	for _, line := range []string{"quiet", "suspect", "suspect [", "suspects []"} {
		if _, ok := decodeSuspects(line); ok {
			t.Errorf("%q is read as suspects", line)
		}
	}
	if got, ok := decodeSuspects("suspect []\n"); !ok || len(got) != 0 {
		t.Errorf("no suspects are read as %+v, %v", got, ok)
	}
}

func TestAnOutboxNeverMakesItsWriterWait(t *testing.T) {
	t.Parallel()
	o := newOutbox()
	for range 1000 {
		o.put("x")
	}
	if n := len(o.take()); n != 1000 {
		t.Errorf("%d lines are taken, want 1000", n)
	}
	taken := make(chan []string)
	go func() { taken <- o.take() }()
	o.put("y")
	if got := <-taken; !slices.Equal(got, []string{"y"}) {
		t.Errorf("taken %q", got)
	}
	go func() { taken <- o.take() }()
	o.close()
	if got := <-taken; got != nil {
		t.Errorf("taken %q from a closed outbox", got)
	}
}
