package swarm

import (
	"fmt"
	"io/fs"
)

// oomWatch tells whether a child that was killed may be the kernel's doing.
type oomWatch struct {
	root  fs.FS // from / on
	kills int64 // when it was last looked
}

func newOOMWatch(root fs.FS) *oomWatch {
	w := &oomWatch{root: root}
	w.kills, _, _ = oomKills(root) // if it cannot be read now, hint says the same as without control groups
	return w
}

// hint is what to look at after a SIGKILL that this program has not sent.
func (w *oomWatch) hint() string {
	kills, known, err := oomKills(w.root)
	if err != nil || !known {
		return "not sent by this program: look for the kernel's OOM killer in dmesg, and at the memory limit of the children"
	}
	fresh := kills - w.kills
	w.kills = kills
	switch fresh {
	case 0:
		return "not sent by this program, and the kernel's OOM killer has killed no process of this container since it was last looked: someone else sent it"
	case 1:
		return "the kernel's OOM killer has killed 1 process of this container since it was last looked: give it more memory, or the children a memory limit"
	}
	return fmt.Sprintf("the kernel's OOM killer has killed %d processes of this container since it was last looked: give it more memory, or the children a memory limit", fresh)
}
