package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Problem is one mistake in the configuration.
type Problem struct {
	File    string // or the variable or flag that the value comes from
	Line    int    // 0 where there are no lines
	Column  int
	Path    string // of the key, such as production.workers.default.forks; "" for the file as a whole
	Message string
}

func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, max(p.Column, 1))
	}
	if p.Path != "" {
		b.WriteString(": " + printable(p.Path))
	}
	return b.String() + ": " + p.Message
}

// printable keeps what a quoted key may hold from breaking the line.
func printable(text string) string {
	quoted := strconv.Quote(text)
	if strings.IndexFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) < 0 {
		return text
	}
	return quoted[1 : len(quoted)-1]
}

// Problems is every mistake of a configuration, in the order of their places.
type Problems []Problem

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// sorted returns the problems in the order of their places, each once: what an anchor
// holds may be met several times.
func (p Problems) sorted() Problems {
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.Compact(p)
}

// part is what is wrong with a part of a value, and where that part stands.
type part struct {
	node *yaml.Node
	what string
}

// parts is an error of several places.
type parts []part

func (p parts) Error() string {
	all := make([]string, len(p))
	for i, one := range p {
		all[i] = one.what
	}
	return strings.Join(all, "; ")
}

// orNil returns nil for an empty list.
func (p parts) orNil() error {
	if len(p) == 0 {
		return nil
	}
	return p
}

// alike maps characters that people confuse.
var alike = strings.NewReplacer("-", "_", " ", "_")

// didYouMean suggests the candidate that the word is closest to, if it is close.
func didYouMean(word string, candidates []string) string {
	word = alike.Replace(strings.ToLower(shortened(word)))
	best, distance := "", max(3, len(word)/3+1)
	for _, candidate := range candidates {
		if d := editDistance(word, strings.ToLower(candidate)); d < distance && d < max(len(word), len(candidate)) {
			best, distance = candidate, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}

// editDistance is Levenshtein's: how many letters have to be put in, taken out or changed.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
