package config

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// Effective returns the configuration as a postburner.yml of its own, each value with
// where it comes from as a comment, secrets masked.
func (c *Config) Effective() ([]byte, error) {
	fields := environmentFields(c, func(string) []field { return workerFields(&c.Worker) })
	environment := c.show(fields, "")
	root := mappingNode()
	add(root, c.Environment, environment, "")
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return nil, fmt.Errorf("write the effective configuration: %w", err)
	}
	return out.Bytes(), encoder.Close()
}

func mappingNode() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode} }

func add(mapping *yaml.Node, name string, value *yaml.Node, comment string) {
	value.LineComment = comment
	mapping.Content = append(mapping.Content, textNode(name), value)
}

func (c *Config) show(fields []field, path string) *yaml.Node {
	out := mappingNode()
	for _, f := range fields {
		at := join(path, f.name)
		switch {
		case f.fields != nil:
			add(out, f.name, c.show(f.fields, at), "")
		case f.name == "workers":
			workers := mappingNode()
			add(workers, c.WorkerName, c.show(f.each(c.WorkerName), join(at, c.WorkerName)), "")
			add(out, f.name, workers, "")
		case f.each != nil:
			names := slices.Sorted(maps.Keys(c.Handlers))
			if len(names) == 0 {
				continue
			}
			all := mappingNode()
			for _, name := range names {
				add(all, name, c.show(f.each(name), join(at, name)), "")
			}
			add(out, f.name, all, "")
		default:
			add(out, f.name, shownValue(f), cmp.Or(c.Sources[at], "default"))
		}
	}
	return out
}

// textNode is text as it would be written: quoted where YAML needs it.
func textNode(text string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	// yaml.v3 v3.0.1 does not see that << as a key would merge, and loses a line break at the
	// beginning of a block.
	if text == "<<" || printable(text) != text {
		node.Style = yaml.DoubleQuotedStyle
	}
	return node
}

// shownText is text without secrets, written so that it is read as it is.
func shownText(text string) *yaml.Node { return textNode(escaped(Masked(text))) }

// shownValue is a value as it would be written.
func shownValue(f field) *yaml.Node {
	value := f.value()
	if f.none && reflect.ValueOf(value).IsZero() {
		return textNode("none")
	}
	var text string
	switch v := value.(type) {
	case []string:
		list := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, word := range v {
			list.Content = append(list.Content, shownText(word))
		}
		return list
	case time.Duration:
		text = shortDuration(v)
	case int64: // a size
		text = shownSize(v)
	case string:
		return shownText(v)
	default:
		text = fmt.Sprint(v)
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: text}
}

// shownSize is a size in the largest unit that it is a whole number of.
func shownSize(bytes int64) string {
	for _, unit := range []string{"TB", "TiB", "GB", "GiB", "MB", "MiB", "kB", "KiB"} {
		if n := int64(units[strings.ToUpper(unit)]); bytes%n == 0 {
			return fmt.Sprint(bytes/n, unit)
		}
	}
	return fmt.Sprint(bytes)
}
