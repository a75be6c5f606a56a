package config

import "gopkg.in/yaml.v3"

// entry is one key of a mapping, merged ones included.
type entry struct {
	name  string
	key   *yaml.Node
	value *yaml.Node
}

// merger collects the keys of one mapping and of those that are merged into it with <<.
type merger struct {
	*decoder
	path   string
	all    []entry
	seen   map[string]bool
	done   map[*yaml.Node]bool // collected already: skip
	active map[*yaml.Node]bool // being collected, so meeting it again is a cycle
}

// entries returns the keys of a mapping. Its own come before merged ones (<<), and among
// those the first has it, as YAML's merge key says.
func (d *decoder) entries(node *yaml.Node, path string) []entry {
	m := &merger{decoder: d, path: path, seen: map[string]bool{}, done: map[*yaml.Node]bool{}, active: map[*yaml.Node]bool{}}
	m.collect(node)
	return m.all
}

func (m *merger) collect(node *yaml.Node) {
	m.active[node] = true
	defer func() { m.active[node], m.done[node] = false, true }()
	own := map[string]*yaml.Node{}
	var merges []*yaml.Node
	for i := 0; i+1 < len(node.Content); i += 2 {
		if !m.step(node) {
			return
		}
		key, value := resolved(node.Content[i]), resolved(node.Content[i+1])
		if key.Kind != yaml.ScalarNode {
			m.problem(node.Content[i], m.path, "has a key that is %s, want text", nodeName(key))
			continue
		}
		merge := key.ShortTag() == "!!merge"
		if first := own[key.Value]; first != nil {
			more := ""
			if merge {
				more = "; merge several as <<: [*one, *two]"
			}
			m.problem(key, join(m.path, key.Value), "is there twice, first in line %d%s", first.Line, more)
			continue
		}
		own[key.Value] = key
		switch {
		case merge:
			merges = append(merges, node.Content[i+1])
		case !m.seen[key.Value]:
			m.seen[key.Value] = true
			m.all = append(m.all, entry{key.Value, key, value})
		}
	}
	for _, merge := range merges {
		m.merge(merge)
	}
}

// merge collects what stands behind a <<: a mapping or a list of them.
func (m *merger) merge(written *yaml.Node) {
	sources := []*yaml.Node{written}
	if value := resolved(written); value.Kind == yaml.SequenceNode {
		sources = value.Content
	}
	for _, source := range sources {
		value := resolved(source)
		switch {
		case value.Kind != yaml.MappingNode:
			m.problem(source, m.path, "merges with << what is %s, want a mapping such as *default", nodeName(value))
		case m.active[value]:
			m.problem(source, m.path, "merges a mapping into itself")
		case !m.done[value]:
			m.collect(value)
		}
	}
}

// maxSteps is far beyond any file that someone wrote.
const maxSteps = 100_000

// step bounds the work on files that multiply by aliases, and says so once.
func (d *decoder) step(node *yaml.Node) bool {
	d.steps++
	if d.steps == maxSteps {
		d.problem(node, "", "has more than %d keys, those that aliases repeat included; is it the right file?", maxSteps)
	}
	return d.steps < maxSteps
}

// resolved follows an alias to what it stands for.
func resolved(node *yaml.Node) *yaml.Node {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return node
}
