package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
)

// Bind decodes the arguments into dst, a non-nil pointer, with ActiveJob's markers
// taken out (see PlainArguments).
//
// A struct takes a single object by its json tags. Positional arguments, as a Ruby
// method has them, fill its exported fields in the order of their declaration; keyword
// arguments behind them fill the rest by name. A slice or array takes all arguments; a
// map, an interface, or a type with a UnmarshalJSON of its own takes what
// PlainArguments returns; any other type takes the only argument. No arguments leave
// dst as it is. Numbers in interfaces are json.Number, so that big integers stay exact.
//
// A time.Duration field reads a number as nanoseconds, as encoding/json does; use
// [Duration] for ActiveSupport's durations and [Date] for dates.
func (e *Envelope) Bind(dst any) error {
	target := reflect.ValueOf(dst)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return fmt.Errorf("bind the arguments of %s: want a pointer, have %T", e.Kind, dst)
	}
	elements, err := e.elements()
	if err != nil {
		return err
	}
	if len(elements) == 0 {
		return nil
	}
	if err := e.bind(target, elements); err != nil {
		return fmt.Errorf("arguments of %s: %w", e.Kind, err)
	}
	return nil
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

func (e *Envelope) bind(target reflect.Value, elements []json.RawMessage) error {
	kind := target.Elem().Kind()
	switch {
	case target.Type().Implements(unmarshaler), kind == reflect.Map, kind == reflect.Interface:
		arguments, err := e.PlainArguments()
		if err != nil {
			return err
		}
		return unmarshal(arguments, target)
	case kind == reflect.Slice, kind == reflect.Array:
		all, err := Marshal(elements)
		if err != nil {
			return err
		}
		return unmarshal(all, target)
	case kind == reflect.Struct && (len(elements) > 1 || elements[0][0] != '{'):
		return e.bindPositional(target.Elem(), elements)
	case len(elements) > 1:
		return fmt.Errorf("there are %d, %s takes one", len(elements), target.Elem().Type())
	}
	return unmarshal(elements[0], target)
}

// bindPositional fills the fields in order, and by name from a keyword hash at the end.
func (e *Envelope) bindPositional(target reflect.Value, elements []json.RawMessage) error {
	if last := len(elements) - 1; e.endsInKeywords() {
		if err := unmarshal(elements[last], target.Addr()); err != nil {
			return err
		}
		elements = elements[:last]
	}
	fields := positions(target.Type())
	if len(elements) > len(fields) {
		return fmt.Errorf("there are %d positional ones, %s has %d fields for them", len(elements), target.Type(), len(fields))
	}
	for i, element := range elements {
		field := target.Type().Field(fields[i])
		if err := unmarshal(element, target.Field(fields[i]).Addr()); err != nil {
			return fmt.Errorf("argument %d, field %s: %w", i+1, field.Name, err)
		}
	}
	return nil
}

// endsInKeywords looks at the arguments as they were put, where the marker still is.
func (e *Envelope) endsInKeywords() bool {
	var last []byte
	err := scanArray(e.Arguments, func(value []byte) error {
		last = value
		return nil
	})
	return err == nil && last != nil && isKeywords(last)
}

// positions are the fields that positional arguments fill.
func positions(t reflect.Type) []int {
	var fields []int
	for i := range t.NumField() {
		if field := t.Field(i); field.IsExported() && !field.Anonymous && field.Tag.Get("json") != "-" {
			fields = append(fields, i)
		}
	}
	return fields
}

// unmarshal decodes one value. Where an interface may receive a number it takes the
// slower way that keeps the number as it is written.
func unmarshal(value []byte, target reflect.Value) error {
	var err error
	if reachesInterface(target.Type()) {
		decoder := json.NewDecoder(bytes.NewReader(value))
		decoder.UseNumber()
		err = decoder.Decode(target.Interface())
	} else {
		err = json.Unmarshal(value, target.Interface())
	}
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if mismatch.Field == "" {
			return fmt.Errorf("a JSON %s does not fit %s", mismatch.Value, mismatch.Type)
		}
		return fmt.Errorf("field %s: a JSON %s does not fit %s", mismatch.Field, mismatch.Value, mismatch.Type)
	}
	return err
}

// interfaces remembers by type what reachesInterface found.
var interfaces sync.Map // reflect.Type → bool

func reachesInterface(t reflect.Type) bool {
	if known, ok := interfaces.Load(t); ok {
		return known.(bool) //nolint:forcetypeassert // only bools are stored
	}
	found := searchInterface(t, map[reflect.Type]bool{})
	interfaces.Store(t, found)
	return found
}

func searchInterface(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return searchInterface(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if searchInterface(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}
