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
	steps    int               // keys seen
}

func (d *decoder) problem(node *yaml.Node, path, format string, args ...any) {
	d.problems = append(d.problems, Problem{File: d.file, Line: node.Line, Column: node.Column, Path: path, Message: fmt.Sprintf(format, args...)})
}

// wrong reports what is wrong with a value, or with parts of it.
func (d *decoder) wrong(node *yaml.Node, path string, err error) {
	several, ok := errors.AsType[parts](err)
	if !ok {
		d.problem(node, path, "%v", err)
	}
	for _, one := range several {
		d.problem(one.node, path, "%s", one.what)
	}
}

// place remembers where a value stands.
func (d *decoder) place(path string, node *yaml.Node) {
	d.places[strings.TrimPrefix(path, d.root+".")] = place{node.Line, node.Column}
}

// item is the path of an item of a list.
func item(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func isNull(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null"
}

// mapping decodes a mapping with fixed keys. An empty one, as in `production:` with nothing
// below it, is all defaults.
func (d *decoder) mapping(node *yaml.Node, path string, fields []field) {
	if node.Kind != yaml.MappingNode && !isNull(node) {
		d.problem(node, path, "is %s, want a mapping of %s", nodeName(node), strings.Join(names(fields), ", "))
		return
	}
	d.place(path, node)
	there := map[string]bool{}
	for _, e := range d.entries(node, path) {
		there[e.name] = true
		f, ok := find(fields, e.name)
		if !ok {
			d.problem(e.key, join(path, e.name), "is no key here%s", cmp.Or(didYouMean(e.name, names(fields)), "; there are "+strings.Join(names(fields), ", ")))
			continue
		}
		d.field(e, join(path, e.name), f)
	}
	for _, f := range fields {
		if f.required && !there[f.name] {
			d.problem(node, path, "has no %s: %s", f.name, f.doc)
		}
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
			d.wrong(e.value, path, err)
			return
		}
		d.sources[strings.TrimPrefix(path, d.root+".")] = fmt.Sprintf("%s:%d", d.file, e.value.Line)
		d.place(path, e.value)
		for i, one := range e.value.Content {
			d.place(item(path, i), one)
		}
	}
}

// free decodes a mapping whose keys are names.
func (d *decoder) free(node *yaml.Node, path string, f field) {
	if node.Kind != yaml.MappingNode && !isNull(node) {
		d.problem(node, path, "is %s, want a mapping of names", nodeName(node))
		return
	}
	d.place(path, node)
	for _, e := range d.entries(node, path) {
		if strings.TrimSpace(e.name) == "" {
			d.problem(e.key, path, "has an empty name as a key")
			continue
		}
		d.mapping(e.value, join(path, e.name), f.each(e.name))
	}
}
