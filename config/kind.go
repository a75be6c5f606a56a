package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/retry"
)

// kind is a type of value that is a scalar: how it is read and described in the schema.
type kind[T any] struct {
	want   string // completes "is …, want"
	schema map[string]any
	read   func(text, tag string) (T, error)
	none   bool // the word none is a value
}

// errWanted makes parse answer "is X, want Y".
var errWanted = errors.New("wanted something else")

// parse reads a value. Its error completes a sentence that begins with the key.
func (k kind[T]) parse(node *yaml.Node) (T, error) {
	if node.Kind != yaml.ScalarNode {
		return *new(T), fmt.Errorf("is %s, want %s", nodeName(node), k.want)
	}
	if isNull(node) {
		return *new(T), fmt.Errorf("is empty, want %s; leave the key out to have its default", k.want)
	}
	v, err := k.read(node.Value, node.ShortTag())
	if !errors.Is(err, errWanted) {
		return v, err
	}
	hint := ""
	if quoted(node) {
		plain := &yaml.Node{Kind: yaml.ScalarNode, Value: node.Value}
		if _, err := k.read(plain.Value, plain.ShortTag()); err == nil {
			hint = "; take the quotes away"
		}
	}
	return v, fmt.Errorf("is %s, want %s%s", nodeName(node), k.want, hint)
}

// orNone also takes the word none, the zero value: it undoes what was merged in.
func orNone[T any](k kind[T]) kind[T] {
	return kind[T]{
		want:   k.want + ", or none",
		schema: map[string]any{"anyOf": []any{k.schema, map[string]any{"const": "none"}}},
		none:   true,
		read: func(text, tag string) (T, error) {
			if text == "none" {
				return *new(T), nil
			}
			return k.read(text, tag)
		},
	}
}

// nodeName is a value as messages show it: short, on one line, without secrets.
func nodeName(node *yaml.Node) string {
	switch {
	case node.Kind == yaml.MappingNode:
		return "a mapping"
	case node.Kind == yaml.SequenceNode:
		return "a list"
	case isNull(node):
		return "empty"
	case node.ShortTag() == "!!str":
		return strconv.Quote(shortened(Masked(node.Value)))
	}
	return shortened(node.Value)
}

// maxShown is how many characters of a value a message shows.
const maxShown = 60

func shortened(text string) string {
	characters := []rune(text)
	if len(characters) <= maxShown {
		return text
	}
	return string(characters[:maxShown]) + "…"
}

// anyText is a string; numbers and booleans are taken as they are written.
func anyText(check func(string) error) kind[string] {
	return kind[string]{want: "text", schema: map[string]any{"type": "string"}, read: func(text, _ string) (string, error) {
		if check == nil {
			return text, nil
		}
		return text, check(text)
	}}
}

// oneOf is a string of a list.
func oneOf(values ...string) kind[string] {
	want := strings.Join(values[:len(values)-1], ", ") + " or " + values[len(values)-1]
	return kind[string]{want: want, schema: map[string]any{"enum": values}, read: func(text, _ string) (string, error) {
		for _, value := range values {
			if text == value {
				return text, nil
			}
		}
		return "", fmt.Errorf("is %q, want %s%s", shortened(text), want, didYouMean(text, values))
	}}
}

// exhausted is what becomes of a job without attempts left.
func exhausted() kind[retry.Exhausted] {
	words := oneOf(string(retry.Bury), string(retry.Discard))
	return kind[retry.Exhausted]{want: words.want, schema: words.schema, read: func(text, tag string) (retry.Exhausted, error) {
		word, err := words.read(text, tag)
		return retry.Exhausted(word), err
	}}
}

// serverURL is where beanstalkd is.
func serverURL() kind[string] {
	return anyText(func(text string) error {
		if text == Embedded {
			return nil
		}
		if err := beanstalk.CheckURL(text); err != nil {
			return fmt.Errorf("names no server: %w; or write %q for the broker in this process", err, Embedded)
		}
		return nil
	})
}
