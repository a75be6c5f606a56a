package job

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// ActiveJob marks what JSON cannot say in the arguments themselves: see
// ActiveJob::Arguments and ActiveJob::Serializers of Rails 6.1 to 8.
const (
	markerPrefix   = "_aj_"
	markerKeywords = "_aj_ruby2_keywords"
	markerGlobalID = "_aj_globalid"
	markerObject   = "_aj_serialized"
)

// hasMarkers is quick and may be wrong only in saying yes.
func hasMarkers(arguments []byte) bool { return bytes.Contains(arguments, []byte(markerPrefix)) }

// PlainArguments returns the arguments for a handler that knows nothing of Ruby: the
// object itself if there is just one argument and it is an object, else the whole
// array, with ActiveJob's markers taken out. Keyword arguments are an object; symbols,
// GlobalIDs, modules and times are strings; a duration is its number of seconds; a range is
// an object {begin, end, exclude_end}. Without markers the text is not touched.
func (e *Envelope) PlainArguments() (json.RawMessage, error) {
	elements, err := e.elements()
	if err != nil {
		return nil, err
	}
	if len(elements) == 1 && elements[0][0] == '{' {
		return elements[0], nil
	}
	if !hasMarkers(e.Arguments) {
		return e.Arguments, nil
	}
	return Marshal(elements)
}

// elements splits the arguments and takes the markers out of each.
func (e *Envelope) elements() ([]json.RawMessage, error) {
	if len(e.Arguments) == 0 {
		return nil, nil
	}
	var elements []json.RawMessage
	err := scanArray(e.Arguments, func(value []byte) error {
		if hasMarkers(value) {
			plain, err := withoutMarkers(value)
			if err != nil {
				return err
			}
			value = plain
		}
		elements = append(elements, value)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("arguments of %s: the array %w", e.Kind, err)
	}
	return elements, nil
}

func withoutMarkers(value []byte) (json.RawMessage, error) {
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber() // numbers stay as they are written, however big
	var decoded any
	if err := decoder.Decode(&decoded); err != nil {
		return nil, err
	}
	return Marshal(plain(decoded))
}

// plain takes the markers out of a decoded value.
func plain(value any) any {
	switch v := value.(type) {
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case map[string]any:
		if id, ok := v[markerGlobalID]; ok && len(v) == 1 {
			return id
		}
		if _, ok := v[markerObject]; ok {
			return plainObject(v)
		}
		for key := range v {
			if strings.HasPrefix(key, markerPrefix) {
				delete(v, key)
				continue
			}
			v[key] = plain(v[key])
		}
	}
	return value
}

// plainObject is what a value of a serializer class means elsewhere: its value, where the
// serializer has one, else its parts (a range: begin, end, exclude_end).
func plainObject(fields map[string]any) any {
	if value, ok := fields["value"]; ok {
		return plain(value)
	}
	delete(fields, markerObject)
	return plain(any(fields))
}

// isKeywords reports whether an element is the keyword arguments of a Ruby method.
func isKeywords(element []byte) bool {
	if element[0] != '{' || !bytes.Contains(element, []byte(markerKeywords)) {
		return false
	}
	found := false
	err := scanObject(element, func(key, _ []byte) error {
		found = found || string(key) == markerKeywords
		return nil
	})
	return err == nil && found
}
