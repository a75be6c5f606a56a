//go:build unix

package swarm

import (
	"testing"
	"time"
)

func TestAChildThatOwesASignOfLifeStopsThePulse(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, c := range map[string]struct {
		child child
		want  bool
	}{
		"in time":               {child{phase: up, heartbeatBy: now.Add(time.Second)}, false},
		"overdue":               {child{phase: consuming, heartbeatBy: now.Add(-time.Second)}, true},
		"overdue while leaving": {child{phase: consuming, leaving: true, heartbeatBy: now.Add(-time.Second)}, true},
		"not up yet":            {child{phase: booting}, false},
	} {
		s := state{slots: []slot{{}, {children: []child{c.child}}}}
		if got := s.isOverdue(now); got != c.want {
			t.Errorf("%s: isOverdue = %v, want %v", name, got, c.want)
		}
	}
}
