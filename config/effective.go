package config

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/postburner/postburner/beanstalk"
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
	mapping.Content = append(mapping.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, value)
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
			if node := shownValue(f); node != nil {
				add(out, f.name, node, cmp.Or(c.Sources[at], "default"))
			}
		}
	}
	return out
}

// shownValue is a value as it would be written; nil for one that is absent.
func shownValue(f field) *yaml.Node {
	var text string
	switch v := f.value().(type) {
	case []string:
		list := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, item := range v {
			list.Content = append(list.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: item})
		}
		return list
	case time.Duration:
		if v == 0 {
			return nil
		}
		text = v.String()
	case int64: // a size
		if v == 0 {
			return nil
		}
		text = fmt.Sprint(v, "B")
	case int:
		if v == 0 && f.name == "gc_limit" {
			return nil
		}
		text = fmt.Sprint(v)
	case string:
		if strings.Contains(v, "://") {
			v = beanstalk.MaskURL(v)
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v}
	default:
		text = fmt.Sprint(v)
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: text}
}
