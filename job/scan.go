package job

import (
	"bytes"
	"errors"
	"fmt"
)

// maxDepth bounds how deep a body may nest, so that a hostile one cannot exhaust the stack.
const maxDepth = 512

// A scanner walks JSON once, checks all of it and hands out the members of the outermost
// value as they stand. Every job pays for it before its handler. encoding/json takes about
// four times as long (BenchmarkDecode).
type scanner struct {
	text []byte
	at   int
}

// scanObject calls member for each key of the object, the key unquoted, the value as it stands.
func scanObject(text []byte, member func(key, value []byte) error) error {
	s := scanner{text: text}
	s.blank()
	if s.peek() != '{' {
		return s.fail("is not a JSON object")
	}
	if err := s.object(1, member); err != nil {
		return err
	}
	return s.end()
}

// scanArray calls element for each element of the array.
func scanArray(text []byte, element func(value []byte) error) error {
	s := scanner{text: text}
	s.blank()
	if s.peek() != '[' {
		return s.fail("is not a JSON array")
	}
	if err := s.array(1, element); err != nil {
		return err
	}
	return s.end()
}

func (s *scanner) end() error {
	s.blank()
	if s.at < len(s.text) {
		return s.fail("has something behind its end")
	}
	return nil
}

// fail says what is wrong and where.
func (s *scanner) fail(what string) error {
	if len(bytes.TrimSpace(s.text)) == 0 {
		return errors.New("is empty")
	}
	return fmt.Errorf("%s (byte %d)", what, s.at+1)
}

func (s *scanner) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

func (s *scanner) blank() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

// object reads from the brace on; member may be nil.
func (s *scanner) object(depth int, member func(key, value []byte) error) error {
	s.at++
	s.blank()
	if s.peek() == '}' {
		s.at++
		return nil
	}
	for {
		s.blank()
		if s.peek() != '"' {
			return s.fail("is not valid JSON: want a key")
		}
		key, err := s.string()
		if err != nil {
			return err
		}
		s.blank()
		if s.peek() != ':' {
			return s.fail("is not valid JSON: want a colon after the key")
		}
		s.at++
		value, err := s.value(depth)
		if err != nil {
			return err
		}
		if member != nil {
			if err := member(key, value); err != nil {
				return err
			}
		}
		s.blank()
		switch s.peek() {
		case ',':
			s.at++
		case '}':
			s.at++
			return nil
		default:
			return s.fail("is not valid JSON: want a comma or the end of the object")
		}
	}
}

// array reads from the bracket on; element may be nil.
func (s *scanner) array(depth int, element func(value []byte) error) error {
	s.at++
	s.blank()
	if s.peek() == ']' {
		s.at++
		return nil
	}
	for {
		value, err := s.value(depth)
		if err != nil {
			return err
		}
		if element != nil {
			if err := element(value); err != nil {
				return err
			}
		}
		s.blank()
		switch s.peek() {
		case ',':
			s.at++
		case ']':
			s.at++
			return nil
		default:
			return s.fail("is not valid JSON: want a comma or the end of the array")
		}
	}
}

// value reads any value inside something of the given depth.
func (s *scanner) value(depth int) ([]byte, error) {
	s.blank()
	start := s.at
	var err error
	switch c := s.peek(); {
	case c == '"':
		_, err = s.string()
	case c == '{' || c == '[':
		switch {
		case depth >= maxDepth:
			err = s.fail(fmt.Sprintf("nests deeper than %d levels", maxDepth))
		case c == '{':
			err = s.object(depth+1, nil)
		default:
			err = s.array(depth+1, nil)
		}
	case c == '-' || '0' <= c && c <= '9':
		err = s.number()
	case c == 't':
		err = s.word("true")
	case c == 'f':
		err = s.word("false")
	case c == 'n':
		err = s.word("null")
	default:
		err = s.fail("is not valid JSON: want a value")
	}
	return s.text[start:s.at], err
}

// string reads a string and returns what is between its quotes, escapes and all.
func (s *scanner) string() ([]byte, error) {
	s.at++
	start := s.at
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			return s.text[start : s.at-1], nil
		case c == '\\':
			if err := s.escape(); err != nil {
				return nil, err
			}
		case c < ' ':
			return nil, s.fail("is not valid JSON: a control character in a string")
		default:
			s.at++
		}
	}
	return nil, s.fail("ends within a string")
}

func (s *scanner) escape() error {
	s.at++
	switch s.peek() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.at++
		return nil
	case 'u':
		for i := 1; i <= 4; i++ {
			if s.at+i >= len(s.text) || !isHex(s.text[s.at+i]) {
				return s.fail(`is not valid JSON: want four hex digits after \u`)
			}
		}
		s.at += 5
		return nil
	}
	return s.fail("is not valid JSON: an unknown escape in a string")
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func (s *scanner) number() error {
	if s.peek() == '-' {
		s.at++
	}
	if s.peek() == '0' {
		s.at++
	} else if err := s.digits(); err != nil {
		return err
	}
	if s.peek() == '.' {
		s.at++
		if err := s.digits(); err != nil {
			return err
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.at++
		if c := s.peek(); c == '+' || c == '-' {
			s.at++
		}
		return s.digits()
	}
	return nil
}

// digits reads one or more.
func (s *scanner) digits() error {
	start := s.at
	for c := s.peek(); '0' <= c && c <= '9'; c = s.peek() {
		s.at++
	}
	if s.at == start {
		return s.fail("is not valid JSON: want a digit")
	}
	return nil
}

func (s *scanner) word(word string) error {
	if !bytes.HasPrefix(s.text[s.at:], []byte(word)) {
		return s.fail("is not valid JSON: want " + word)
	}
	s.at += len(word)
	return nil
}
