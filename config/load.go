package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/retry"
)

// Source says where a configuration comes from.
type Source struct {
	Path        string            // of the file; "": config/postburner.yml, else postburner.yml
	Environment string            // "": POSTBURNER_ENV, else development
	Worker      string            // "": the only one there is, else default
	NoFile      bool              // no file is looked for
	AnyWorker   bool              // no worker is needed: Config.Worker is one of the defaults
	Flags       map[string]string // overrides, by the key's path below the environment or worker, such as "forks" or "log.level"
	// Lookup finds variables; nil: os.LookupEnv.
	Lookup func(name string) (string, bool)
}

// searched is where a file is looked for when none is named.
var searched = []string{"config/postburner.yml", "postburner.yml"}

// maxFile bounds the size of a file.
const maxFile = 1 << 20

// Load reads, resolves and checks a configuration. Its error is Problems, all of them.
//
// Without a file the environment development has the defaults and the embedded broker;
// any other environment has to have a file. Of the file, the chosen environment is
// checked with all its workers; of the others, only that the file as a whole is YAML.
func Load(s Source) (*Config, error) {
	if s.Lookup == nil {
		s.Lookup = os.LookupEnv
	}
	if s.Environment == "" {
		s.Environment = "development"
		if name, ok := s.Lookup("POSTBURNER_ENV"); ok && name != "" {
			s.Environment = name
		}
	}
	d := &decoder{lookup: s.Lookup, sources: map[string]string{}, places: map[string]place{}, root: s.Environment}
	c := defaults(s.Environment)
	c.Sources, c.places = d.sources, d.places
	l := &loader{Source: s, decoder: d, config: c, workers: map[string]*Worker{}}
	l.load()
	if len(d.problems) > 0 {
		d.problems.sort()
		return nil, d.problems
	}
	return c, nil
}

func defaults(environment string) *Config {
	c := &Config{
		Environment: environment, BeanstalkURL: "beanstalk://127.0.0.1:11300",
		DefaultQueue: "default", DefaultPriority: 65536, DefaultTTR: 300 * time.Second,
		Scheduler: Scheduler{Queue: "scheduler", Interval: 300 * time.Second, Priority: 100},
		Retry:     retry.Default(), Log: Log{Level: "info", Format: "text"}, Handlers: map[string]Handler{},
	}
	if environment == "development" {
		c.BeanstalkURL = Embedded
	}
	return c
}

func workerDefaults() *Worker {
	return &Worker{Threads: 10, Timeout: 3 * time.Second, BootTimeout: 30 * time.Second, LivenessTimeout: 60 * time.Second}
}

// loader is one Load.
type loader struct {
	Source
	*decoder
	config  *Config
	workers map[string]*Worker
}

func (l *loader) load() {
	fields := environmentFields(l.config, l.workerFields)
	text, ok := l.read()
	if !ok {
		return
	}
	if text != nil {
		root, ok := l.parse(text)
		if !ok || !l.environment(root, fields) {
			return
		}
	}
	if !l.chooseWorker() {
		return
	}
	l.override(fields)
	l.complete()
}

func (l *loader) workerFields(name string) []field {
	w := workerDefaults()
	l.workers[name] = w
	return workerFields(w)
}

// read returns the text of the file, nil if none was named and none is there.
func (l *loader) read() (text []byte, ok bool) {
	if l.NoFile {
		l.file = "without a file"
		return nil, true
	}
	paths := searched
	if l.Path != "" {
		paths = []string{l.Path}
	}
	for _, path := range paths {
		l.file = path
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) && l.Path == "" {
			continue
		}
		if err != nil {
			if inner, ok := errors.AsType[*os.PathError](err); ok {
				err = inner.Err
			}
			l.problem(&yaml.Node{}, "", "cannot be read: %v; name a file with --config", err)
			return nil, false
		}
		if len(text) > maxFile {
			l.problem(&yaml.Node{}, "", "has %d bytes, more than any configuration; is it the right file?", len(text))
			return nil, false
		}
		l.config.File = path
		return text, true
	}
	l.file = strings.Join(searched, " or ")
	if l.root != "development" {
		l.problem(&yaml.Node{}, "", "is not there, and environment %s needs it; write one, or name it with --config", l.root)
		return nil, false
	}
	return nil, true
}

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

// syntax reports what the parser could not read. It tells the line; the column is where that line begins.
func (l *loader) syntax(text []byte, err error) {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if rest, ok := strings.CutPrefix(message, "line "); ok {
		digits, what, _ := strings.Cut(rest, ": ")
		if n, err := strconv.Atoi(digits); err == nil {
			line, message = n, what
		}
	}
	node := &yaml.Node{Line: line, Column: 1}
	lines := bytes.Split(text, []byte("\n"))
	if line <= len(lines) {
		indented := lines[line-1]
		node.Column = len(indented) - len(bytes.TrimLeft(indented, " \t")) + 1
		if bytes.ContainsRune(indented[:node.Column-1], '\t') {
			message += "; YAML is indented with spaces, this line with a tab"
		}
	}
	l.problem(node, "", "is not YAML: %s", message)
}

// environment decodes the chosen one.
func (l *loader) environment(top *yaml.Node, fields []field) bool {
	var there []string
	for _, e := range l.entries(top, "") {
		if e.name == l.root {
			l.mapping(e.value, l.root, fields)
			return true
		}
		there = append(there, e.name)
	}
	l.problem(&yaml.Node{Line: top.Line, Column: top.Column}, "", "has no environment %s%s; there are %s", l.root, didYouMean(l.root, there), strings.Join(there, ", "))
	return false
}

func (l *loader) chooseWorker() bool {
	there := slices.Sorted(maps.Keys(l.workers))
	name := l.Worker
	switch {
	case l.AnyWorker:
		l.config.WorkerName, l.config.Worker = "default", *workerDefaults()
		return true
	case name == "" && len(there) == 1:
		name = there[0]
	case name == "":
		name = "default"
	}
	worker := l.workers[name]
	if worker == nil {
		if len(there) > 0 || l.Worker != "" && l.Worker != "default" {
			l.problem(&yaml.Node{}, join(l.root, "workers"), "has no worker %s%s; there are %s", name, didYouMean(name, there), cmpJoin(there))
			return false
		}
		worker = workerDefaults()
	}
	l.config.WorkerName, l.config.Worker = name, *worker
	return true
}

func cmpJoin(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// override takes what variables and flags say instead of the file.
func (l *loader) override(fields []field) {
	l.overrideFields(fields, "", "")
	l.overrideFields(workerFields(&l.config.Worker), "", "workers."+l.config.WorkerName+".")
	for name := range l.Flags {
		if !slices.ContainsFunc(fields, func(f field) bool { return f.name == strings.Split(name, ".")[0] }) && !slices.Contains(names(workerFields(&Worker{})), name) {
			panic("config: there is no key " + name + " for a flag to set")
		}
	}
}

// overrideFields looks for each field's flag and variable. below is the field's path without where, by which both are named.
func (l *loader) overrideFields(fields []field, below, where string) {
	for _, f := range fields {
		path := join(below, f.name)
		if f.fields != nil {
			l.overrideFields(f.fields, path, where)
			continue
		}
		if f.each != nil {
			continue
		}
		name := Variable(path)
		if text, ok := l.Flags[path]; ok {
			l.set(f, text, "--"+strings.NewReplacer(".", "-", "_", "-").Replace(path), where+path)
		} else if text, ok := l.lookup(name); ok && text != "" {
			l.set(f, text, name, where+path)
		}
	}
}

// Variable returns the name of the variable that overrides the key of a path below its
// environment or worker, such as log.level or forks.
func Variable(path string) string {
	return "POSTBURNER_" + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}

func (l *loader) set(f field, text, source, path string) {
	node := &yaml.Node{Kind: yaml.ScalarNode, Value: text}
	if f.list {
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for item := range strings.SplitSeq(text, ",") {
			list.Content = append(list.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: strings.TrimSpace(item)})
		}
		node = list
	}
	if err := f.set(node); err != nil {
		l.problems = append(l.problems, Problem{File: source, Path: join(l.root, path), Message: err.Error()})
		return
	}
	l.sources[path] = source
	delete(l.places, path)
}

// complete fills in defaults that depend on other values, and checks how values go together.
func (l *loader) complete() {
	c, w := l.config, &l.config.Worker
	if w.ShutdownTimeout == 0 {
		w.ShutdownTimeout = c.DefaultTTR
	}
	if len(w.Queues) == 0 {
		w.Queues = []string{c.DefaultQueue}
	}
	in := func(path, format string, args ...any) {
		p := Problem{File: l.file, Path: join(l.root, path), Message: fmt.Sprintf(format, args...)}
		if at, ok := l.places[path]; ok {
			p.Line, p.Column = at.line, at.column
		} else if source, ok := l.sources[path]; ok {
			p.File = source
		}
		l.problems = append(l.problems, p)
	}
	queues := "workers." + c.WorkerName + ".queues"
	seen := map[string]bool{}
	for _, queue := range w.Queues {
		if seen[queue] {
			in(queues, "names %s twice", queue)
		}
		seen[queue] = true
		l.checkQueue(in, queues, queue)
	}
	l.checkQueue(in, "default_queue", c.DefaultQueue)
	l.checkQueue(in, "scheduler_queue", c.Scheduler.Queue)
	if seen[c.Scheduler.Queue] {
		in(queues, "names %s, the queue of the watchdog, which must hold nothing else; take it out, or name another scheduler_queue", c.Scheduler.Queue)
	}
	if c.Retry.Max > 0 && c.Retry.Max < c.Retry.Base {
		in("retry.max", "is %v, below base, %v", c.Retry.Max, c.Retry.Base)
	}
	if w.MemoryLimit > 0 && w.Forks == 0 {
		in("workers."+c.WorkerName+".memory_limit", "needs forks: with forks: 0 there is no child to replace")
	}
	if c.Environment == "" || beanstalk.CheckTube(c.Environment) != nil {
		l.problems = append(l.problems, Problem{File: l.file, Message: fmt.Sprintf("environment %q cannot be part of a tube's name", c.Environment)})
	}
}

func (l *loader) checkQueue(in func(path, format string, args ...any), path, queue string) {
	if queue == "" {
		in(path, "names a queue without a name")
		return
	}
	if err := beanstalk.CheckTube(l.config.Tube(queue)); err != nil {
		in(path, "names a queue that cannot be: %v", err)
	}
}
