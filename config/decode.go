package config

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

// decoder walks the parsed file along the fields and collects problems.
type decoder struct {
	file     string
	lookup   func(name string) (string, bool)
	problems Problems
	sources  map[string]string // by path below the environment
	places   map[string]place  // likewise, of values that stand in the file
	root     string            // the environment, the first part of every path
	steps    int               // entries seen, bounded against files that multiply by aliases
}

// maxSteps is far beyond any file that someone wrote.
const maxSteps = 100_000

func (d *decoder) problem(node *yaml.Node, path, format string, args ...any) {
	d.problems = append(d.problems, Problem{File: d.file, Line: node.Line, Column: node.Column, Path: path, Message: fmt.Sprintf(format, args...)})
}

// entry is one key of a mapping, merged ones included.
type entry struct {
	name  string
	key   *yaml.Node
	value *yaml.Node
}

// entries returns the keys of a mapping. Its own come before merged ones (<<), and among
// those the first has it, as YAML's merge key says.
func (d *decoder) entries(node *yaml.Node, path string) []entry {
	seen := map[string]bool{}
	var all []entry
	d.collect(node, path, seen, &all, 0)
	return all
}

// maxMerges is how deep mappings may be merged into each other.
const maxMerges = 20

func (d *decoder) collect(node *yaml.Node, path string, seen map[string]bool, all *[]entry, depth int) {
	if depth > maxMerges {
		d.problem(node, path, "merges more than %d mappings into each other; does an alias lead back to itself?", maxMerges)
		return
	}
	own := map[string]*yaml.Node{}
	var merges []*yaml.Node
	for i := 0; i+1 < len(node.Content); i += 2 {
		if d.steps++; d.steps > maxSteps {
			return
		}
		key, value := resolved(node.Content[i]), resolved(node.Content[i+1])
		if key.Kind != yaml.ScalarNode {
			d.problem(node.Content[i], path, "has a key that is %s, want text", nodeName(key))
			continue
		}
		if key.ShortTag() == "!!merge" {
			merges = append(merges, value)
			continue
		}
		if first := own[key.Value]; first != nil {
			d.problem(key, join(path, key.Value), "is there twice, first in line %d", first.Line)
			continue
		}
		own[key.Value] = key
		if !seen[key.Value] {
			seen[key.Value] = true
			*all = append(*all, entry{key.Value, key, value})
		}
	}
	for _, merge := range merges {
		sources := []*yaml.Node{merge}
		if merge.Kind == yaml.SequenceNode {
			sources = merge.Content
		}
		for _, source := range sources {
			source = resolved(source)
			if source.Kind != yaml.MappingNode {
				d.problem(source, path, "merges %s with <<, want a mapping such as *default", nodeName(source))
				continue
			}
			d.collect(source, path, seen, all, depth+1)
		}
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// mapping decodes a mapping with fixed keys.
func (d *decoder) mapping(node *yaml.Node, path string, fields []field) {
	if node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null" {
		return // `production:` with nothing below it: all defaults
	}
	if node.Kind != yaml.MappingNode {
		d.problem(node, path, "is %s, want a mapping of %s", nodeName(node), strings.Join(names(fields), ", "))
		return
	}
	for _, e := range d.entries(node, path) {
		f, ok := find(fields, e.name)
		if !ok {
			d.problem(e.key, join(path, e.name), "is no key here%s", cmp.Or(didYouMean(e.name, names(fields)), "; there are "+strings.Join(names(fields), ", ")))
			continue
		}
		d.field(e, join(path, e.name), f)
	}
}

func (d *decoder) field(e entry, path string, f field) {
	switch {
	case f.fields != nil:
		d.mapping(e.value, path, f.fields)
	case f.each != nil:
		d.free(e.value, path, f)
	default:
		value, err := d.expanded(e.value)
		if err == nil {
			err = f.set(value)
		}
		if err != nil {
			d.problem(e.value, path, "%s", err)
			return
		}
		below := strings.TrimPrefix(path, d.root+".")
		d.sources[below] = fmt.Sprintf("%s:%d", d.file, e.value.Line)
		d.places[below] = place{e.value.Line, e.value.Column}
	}
}

// free decodes a mapping whose keys are names.
func (d *decoder) free(node *yaml.Node, path string, f field) {
	if node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null" {
		return
	}
	if node.Kind != yaml.MappingNode {
		d.problem(node, path, "is %s, want a mapping of names", nodeName(node))
		return
	}
	for _, e := range d.entries(node, path) {
		if strings.TrimSpace(e.name) == "" {
			d.problem(e.key, path, "has an empty name as a key")
			continue
		}
		d.mapping(e.value, join(path, e.name), f.each(e.name))
	}
}

func names(fields []field) []string {
	all := make([]string, len(fields))
	for i, f := range fields {
		all[i] = f.name
	}
	return all
}

func find(fields []field, name string) (field, bool) {
	for _, f := range fields {
		if f.name == name {
			return f, true
		}
	}
	return field{}, false
}

// expanded returns the value with the variables in it replaced.
func (d *decoder) expanded(node *yaml.Node) (*yaml.Node, error) {
	switch node.Kind {
	case yaml.ScalarNode:
		if !strings.Contains(node.Value, "$") {
			return node, nil
		}
		text, err := expand(node.Value, d.lookup)
		if err != nil {
			return nil, err
		}
		return retyped(node, text), nil
	case yaml.SequenceNode:
		list := *node
		list.Content = nil
		for _, item := range node.Content {
			expanded, err := d.expanded(resolved(item))
			if err != nil {
				return nil, err
			}
			list.Content = append(list.Content, expanded)
		}
		return &list, nil
	}
	return node, nil
}

// retyped is a scalar with another text. A plain one has its type anew, so that
// `${FORKS:-4}` is a number.
func retyped(node *yaml.Node, text string) *yaml.Node {
	out := *node
	out.Value = text
	if node.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
		out.Tag = "" // ShortTag then looks at the text
	}
	return &out
}

// expand replaces ${NAME}, ${NAME:-default}, ${NAME:?message} and $$. Any other $ stays as it is.
func expand(text string, lookup func(string) (string, bool)) (string, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "$")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		switch {
		case strings.HasPrefix(rest, "$"):
			out.WriteByte('$')
			text = rest[1:]
		case strings.HasPrefix(rest, "{"):
			inner, after, closed := strings.Cut(rest[1:], "}")
			if !closed {
				return "", errors.New("has a ${ without its }; write $$ for a dollar sign")
			}
			value, err := variable(inner, lookup)
			if err != nil {
				return "", err
			}
			out.WriteString(value)
			text = after
		default:
			out.WriteByte('$')
			text = rest
		}
	}
}

func variable(inner string, lookup func(string) (string, bool)) (string, error) {
	name, rest, _ := strings.Cut(inner, ":")
	if !isName(name) {
		return "", fmt.Errorf("has ${%s}, want ${NAME}, ${NAME:-default} or ${NAME:?message}", inner)
	}
	if rest != "" && rest[0] != '-' && rest[0] != '?' || rest == "" && strings.HasSuffix(inner, ":") {
		return "", fmt.Errorf("has ${%s}, want ${NAME}, ${NAME:-default} or ${NAME:?message}", inner)
	}
	value, set := lookup(name)
	switch {
	case set && (value != "" || rest == ""):
		return value, nil
	case rest == "":
		return "", fmt.Errorf("needs the variable %s, which is not set; set it, or write ${%s:-default}", name, name)
	case rest[0] == '?':
		return "", fmt.Errorf("needs the variable %s: %s", name, cmp.Or(rest[1:], "it is not set"))
	}
	return rest[1:], nil
}

func isName(name string) bool {
	for i, r := range name {
		if r != '_' && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}
