package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/retry"
)

// kind is a type of value: how it is read, shown, and described in the schema.
type kind[T any] struct {
	parse  func(node *yaml.Node) (T, error)
	schema map[string]any
}

// scalarKind reads a scalar. want completes "is …, want".
func scalarKind[T any](want string, schema map[string]any, parse func(text, tag string) (T, error)) kind[T] {
	return kind[T]{schema: schema, parse: func(node *yaml.Node) (T, error) {
		if node.Kind != yaml.ScalarNode {
			return *new(T), fmt.Errorf("is %s, want %s", nodeName(node), want)
		}
		if node.ShortTag() == "!!null" {
			return *new(T), fmt.Errorf("is empty, want %s; leave the key out to have its default", want)
		}
		v, err := parse(node.Value, node.ShortTag())
		if errors.Is(err, errWanted) {
			err = fmt.Errorf("is %s, want %s", shown(node), want)
		}
		return v, err
	}}
}

// errWanted has scalarKind say what is wanted.
var errWanted = errors.New("wanted something else")

func shown(node *yaml.Node) string {
	if node.ShortTag() == "!!str" {
		return strconv.Quote(node.Value)
	}
	return node.Value
}

func nodeName(node *yaml.Node) string {
	switch node.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	default:
		return shown(node)
	}
}

// anyText is a string; numbers and booleans are taken as they are written.
func anyText(check func(string) error) kind[string] {
	return scalarKind("text", map[string]any{"type": "string"}, func(text, _ string) (string, error) {
		if check == nil {
			return text, nil
		}
		return text, check(text)
	})
}

// oneOf is a string of a list.
func oneOf(values ...string) kind[string] {
	want := strings.Join(values[:len(values)-1], ", ") + " or " + values[len(values)-1]
	return scalarKind(want, map[string]any{"enum": values}, func(text, _ string) (string, error) {
		for _, value := range values {
			if text == value {
				return text, nil
			}
		}
		return "", fmt.Errorf("is %q, want %s%s", text, want, didYouMean(text, values))
	})
}

// exhausted is what becomes of a job without attempts left.
func exhausted() kind[retry.Exhausted] {
	words := oneOf(string(retry.Bury), string(retry.Discard))
	return kind[retry.Exhausted]{schema: words.schema, parse: func(node *yaml.Node) (retry.Exhausted, error) {
		text, err := words.parse(node)
		return retry.Exhausted(text), err
	}}
}

// number is a whole number from low to high.
func number[T int | uint32](low, high int64) kind[T] {
	want := fmt.Sprintf("a whole number from %d to %d", low, high)
	schema := map[string]any{"type": "integer", "minimum": low, "maximum": high}
	return scalarKind(want, schema, func(text, tag string) (T, error) {
		n, err := whole(text, tag)
		if err != nil {
			return 0, err
		}
		if n < low || n > high {
			return 0, errWanted
		}
		return T(n), nil
	})
}

// whole reads a decimal number. YAML 1.1 reads 010 as eight; nobody means that here.
func whole(text, tag string) (int64, error) {
	if tag != "!!int" {
		return 0, errWanted
	}
	digits := strings.TrimLeft(text, "+-")
	if len(digits) > 1 && digits[0] == '0' {
		return 0, fmt.Errorf("is %s, which YAML reads as a number of base 8, 16 or 2: write it in base 10 without a leading 0", text)
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 64)
	if err != nil {
		return 0, errWanted
	}
	return n, nil
}

// fraction is a number from low to high.
func fraction(low, high float64) kind[float64] {
	want := fmt.Sprintf("a number from %v to %v", low, high)
	schema := map[string]any{"type": "number", "minimum": low, "maximum": high}
	return scalarKind(want, schema, func(text, tag string) (float64, error) {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || tag != "!!int" && tag != "!!float" || !(f >= low && f <= high) {
			return 0, errWanted
		}
		return f, nil
	})
}

// duration is a number of seconds, or text such as 1m30s.
func duration(low, high time.Duration) kind[time.Duration] {
	want := fmt.Sprintf("seconds, or a duration such as 90s or 1h30m, from %v to %v", low, high)
	schema := map[string]any{"anyOf": []any{
		map[string]any{"type": "number", "minimum": low.Seconds(), "maximum": high.Seconds()},
		map[string]any{"type": "string", "pattern": `^([0-9.]+(ns|us|µs|ms|s|m|h))+$`},
	}}
	return scalarKind(want, schema, func(text, tag string) (time.Duration, error) {
		var d time.Duration
		switch tag {
		case "!!int":
			n, err := whole(text, tag)
			if err != nil {
				return 0, err
			}
			if n > math.MaxInt64/int64(time.Second) || n < 0 {
				return 0, errWanted
			}
			d = time.Duration(n) * time.Second
		case "!!float":
			f, err := strconv.ParseFloat(text, 64)
			if err != nil || !(f >= 0 && f <= math.MaxInt64/float64(time.Second)) {
				return 0, errWanted
			}
			d = time.Duration(f * float64(time.Second))
		default:
			var err error
			if d, err = time.ParseDuration(text); err != nil {
				return 0, errWanted
			}
		}
		if d < low || d > high {
			return 0, errWanted
		}
		return d, nil
	})
}

// size is bytes, or text such as 512MB or 1GiB.
func size(low int64) kind[int64] {
	want := "bytes, or a size such as 512MB or 2GiB, of at least " + strconv.FormatInt(low, 10)
	schema := map[string]any{"anyOf": []any{
		map[string]any{"type": "integer", "minimum": low},
		map[string]any{"type": "string", "pattern": `^[0-9]+(\.[0-9]+)? ?([KMGT]i?B|B)$`},
	}}
	units := map[string]float64{"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}
	return scalarKind(want, schema, func(text, tag string) (int64, error) {
		if tag == "!!int" {
			n, err := whole(text, tag)
			if err == nil && n < low {
				err = errWanted
			}
			return n, err
		}
		at := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
		if at <= 0 {
			return 0, errWanted
		}
		unit, ok := units[strings.ToUpper(strings.TrimSpace(text[at:]))]
		f, err := strconv.ParseFloat(text[:at], 64)
		if !ok || err != nil || f*unit < float64(low) || f*unit >= math.MaxInt64 {
			return 0, errWanted
		}
		return int64(f * unit), nil
	})
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
