package config

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// parse returns the top mapping.
func (l *loader) parse(text []byte) (*yaml.Node, bool) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	if at := firstInvalid(text); at >= 0 {
		line := bytes.Count(text[:at], []byte("\n")) + 1
		column := at - bytes.LastIndexByte(text[:at], '\n')
		l.problem(&yaml.Node{Line: line, Column: column}, "", "is not text in UTF-8: byte %#x", text[at])
		return nil, false
	}
	documents := yaml.NewDecoder(bytes.NewReader(text))
	var document, second yaml.Node
	if err := documents.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			l.problem(&yaml.Node{Line: 1}, "", "is empty, want environments such as development and production")
		} else {
			l.syntax(text, err)
		}
		return nil, false
	}
	if err := documents.Decode(&second); !errors.Is(err, io.EOF) {
		if err != nil {
			l.syntax(text, err)
		} else {
			l.problem(&second, "", "has a second document (---), which would be ignored; put everything into one")
		}
		return nil, false
	}
	top := resolved(document.Content[0])
	if top.Kind != yaml.MappingNode {
		l.problem(top, "", "is %s, want a mapping of environments such as development and production", nodeName(top))
		return nil, false
	}
	return top, true
}

func firstInvalid(text []byte) int {
	for i := 0; i < len(text); {
		r, width := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && width == 1 {
			return i
		}
		i += width
	}
	return -1
}

// These are the messages of yaml.v3 v3.0.1 that need more than being passed on. Those of
// its parser, unlike those of its scanner, count lines from 0, and name the line where the
// broken mapping or list begins. Those about anchors name no line.
var (
	parserMessage  = regexp.MustCompile(`^did not find expected (',' or|'-' indicator|<|key|node content)`)
	unknownAnchor  = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)
	messagedLine   = regexp.MustCompile(`^line (\d+): `)
	tabIndentation = regexp.MustCompile(`^ *\t`)
)

// syntax reports what the YAML parser could not read. It tells the line, or part of it;
// the column is where the text of that line begins.
func (l *loader) syntax(text []byte, err error) {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	lines := bytes.Split(text, []byte("\n"))
	line := 1
	if found := messagedLine.FindStringSubmatch(message); found != nil {
		message = message[len(found[0]):]
		if n, err := strconv.Atoi(found[1]); err == nil {
			line = n
			if parserMessage.MatchString(message) {
				line++
			}
		}
	}
	line = min(line, len(lines))
	node := &yaml.Node{Line: line}
	written := lines[line-1]
	node.Column = len(written) - len(bytes.TrimLeft(written, " \t")) + 1
	anchor := unknownAnchor.FindStringSubmatch(message)
	switch {
	case anchor != nil:
		node.Line, node.Column = position(text, "*"+anchor[1])
		message += "; an anchor, &" + anchor[1] + ", has to stand before it"
	case tabIndentation.Match(written):
		message += "; YAML is indented with spaces, this line with a tab"
	case strings.HasPrefix(message, "mapping values are not allowed"):
		message += "; is this line indented as those around it, and text with a colon quoted?"
	case parserMessage.MatchString(message):
		message += "; look at the indentation, quotes and brackets of this line and those below it"
	}
	l.problem(node, "", "is not YAML: %s", message)
}

// position returns the line and column where a word first stands.
func position(text []byte, word string) (line, column int) {
	at := max(bytes.Index(text, []byte(word)), 0)
	return bytes.Count(text[:at], []byte("\n")) + 1, at - bytes.LastIndexByte(text[:at], '\n')
}
