package config

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// override takes what variables and flags say instead of the file.
func (l *loader) override(fields []field) {
	worker := workerFields(&l.config.Worker)
	l.overrideFields(fields, "", "")
	l.overrideFields(worker, "", "workers."+l.config.WorkerName+".")
	known := settable(slices.Concat(fields, worker), "")
	for path := range l.Flags {
		if !slices.Contains(known, path) {
			panic("config: there is no key " + path + " for a flag to set")
		}
	}
}

// settable returns the paths of the fields that a flag or variable may set.
func settable(fields []field, below string) []string {
	var paths []string
	for _, f := range fields {
		switch path := join(below, f.name); {
		case f.fields != nil:
			paths = append(paths, settable(f.fields, path)...)
		case f.each == nil:
			paths = append(paths, path)
		}
	}
	return paths
}

// overrideFields looks for each field's flag and variable, which are named by
// below + the field; where is prepended only in messages and in Config.Sources.
func (l *loader) overrideFields(fields []field, below, where string) {
	for _, f := range fields {
		path := join(below, f.name)
		if f.fields != nil {
			l.overrideFields(f.fields, path, where)
			continue
		}
		if f.each != nil {
			continue
		}
		name := Variable(path)
		if text, ok := l.Flags[path]; ok {
			l.set(f, text, "--"+strings.NewReplacer(".", "-", "_", "-").Replace(path), where+path)
		} else if text, ok := l.lookup(name); ok && text != "" {
			l.set(f, text, name, where+path)
		}
	}
}

// Variable returns the name of the variable that overrides the key of a path below its
// environment or worker, such as log.level or forks. A variable that is set to nothing
// counts as not set.
func Variable(path string) string {
	return "POSTBURNER_" + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}

func (l *loader) set(f field, text, source, path string) {
	node := &yaml.Node{Kind: yaml.ScalarNode, Value: text}
	if f.list {
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for word := range strings.SplitSeq(text, ",") {
			list.Content = append(list.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: strings.TrimSpace(word)})
		}
		node = list
	}
	err := errors.New("is not text in UTF-8")
	if utf8.ValidString(text) {
		err = f.set(node)
	}
	if err != nil {
		l.problems = append(l.problems, Problem{File: source, Path: join(l.root, path), Message: err.Error()})
		return
	}
	l.sources[path] = source
	for place := range l.places {
		if place == path || strings.HasPrefix(place, path+"[") {
			delete(l.places, place)
		}
	}
}
