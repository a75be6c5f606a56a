package config

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// expanded returns a value with the variables in it, or in the items of a list, replaced.
// What lies deeper has no meaning to any key, and may lead back to itself.
func (d *decoder) expanded(node *yaml.Node) (*yaml.Node, error) {
	if node.Kind != yaml.SequenceNode {
		return d.expandedScalar(node)
	}
	list := *node
	list.Content = make([]*yaml.Node, len(node.Content))
	var wrong parts
	for i, item := range node.Content {
		value, err := d.expandedScalar(resolved(item))
		if err != nil {
			wrong = append(wrong, part{item, err.Error()})
		}
		list.Content[i] = value
	}
	return &list, wrong.orNil()
}

func (d *decoder) expandedScalar(node *yaml.Node) (*yaml.Node, error) {
	if node.Kind != yaml.ScalarNode || !strings.Contains(node.Value, "$") {
		return node, nil
	}
	text, err := expand(node.Value, d.lookup)
	if err != nil {
		return nil, err
	}
	return retyped(node, text), nil
}

// retyped is a scalar with another text. A plain one has its type anew, so that
// `${FORKS:-4}` is a number.
func retyped(node *yaml.Node, text string) *yaml.Node {
	out := *node
	out.Value = text
	if !quoted(node) && node.Style&yaml.TaggedStyle == 0 {
		out.Tag = "" // ShortTag then looks at the text
	}
	return &out
}

func quoted(node *yaml.Node) bool {
	return node.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
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
			if strings.Contains(inner, "${") {
				return "", fmt.Errorf("has ${%s}, one variable inside another, which is not possible", inner)
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

// escaped writes text so that expand gives it back.
func escaped(text string) string {
	var out strings.Builder
	for i := range len(text) {
		out.WriteByte(text[i])
		if text[i] == '$' && i+1 < len(text) && (text[i+1] == '$' || text[i+1] == '{') {
			out.WriteByte('$')
		}
	}
	return out.String()
}

// variable returns the value of what stands between ${ and }.
func variable(inner string, lookup func(string) (string, bool)) (string, error) {
	name, rest, colon := strings.Cut(inner, ":")
	if !isName(name) || colon && !strings.HasPrefix(rest, "-") && !strings.HasPrefix(rest, "?") {
		return "", fmt.Errorf("has ${%s}, want ${NAME}, ${NAME:-default} or ${NAME:?message}", inner)
	}
	value, set := lookup(name)
	switch {
	case set && !utf8.ValidString(value):
		return "", fmt.Errorf("takes the variable %s, which is not text in UTF-8", name)
	case set && (value != "" || !colon):
		return value, nil
	case !colon:
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
