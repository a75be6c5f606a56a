package swarm

import (
	"encoding/json"
	"strings"
	"time"
)

// Suspect is a job that was on the board of a child that ended without having been asked to.
type Suspect struct {
	ID     uint64 `json:"id"` // beanstalkd's
	Key    uint64 `json:"key"`
	Deaths int    `json:"deaths"` // of children that were running it
	Alone  bool   `json:"alone"`  // at least one of them was running nothing else
}

// maxSuspects bounds how many are remembered, the latest of them.
const maxSuspects = 1000

// vigilantFor is how long after the start of the swarm its children have to be
// vigilant: what ended the swarm before it may have been a job.
const vigilantFor = time.Minute

// suspects are the jobs that were running when children died, the latest last.
type suspects []Suspect

// accuse notes what was running on a board when its child died, and returns what is known of it now.
func (s *suspects) accuse(running []Row) []Suspect {
	accused := make([]Suspect, 0, len(running))
	for _, r := range running {
		now := Suspect{ID: r.ID, Key: r.Key, Deaths: 1, Alone: len(running) == 1}
		for i, known := range *s {
			if known.ID == r.ID && known.Key == r.Key {
				now.Deaths += known.Deaths
				now.Alone = now.Alone || known.Alone
				*s = append((*s)[:i], (*s)[i+1:]...)
				break
			}
		}
		accused = append(accused, now)
		*s = append(*s, now)
	}
	if extra := len(*s) - maxSuspects; extra > 0 {
		*s = append(suspects(nil), (*s)[extra:]...)
	}
	return accused
}

// commandSuspect is followed by a blank and the JSON of a list of suspects, which may be empty.
const commandSuspect = "suspect"

// encodeSuspects makes the command that tells children of suspects.
func encodeSuspects(list []Suspect) (string, error) {
	text, err := json.Marshal(list)
	return commandSuspect + " " + string(text) + "\n", err
}

// decodeSuspects reads a command, if that is what the line is.
func decodeSuspects(line string) (list []Suspect, ok bool) {
	text, ok := strings.CutPrefix(line, commandSuspect+" ")
	return list, ok && json.Unmarshal([]byte(text), &list) == nil
}
