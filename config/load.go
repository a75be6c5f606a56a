package config

import (
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/postburner/postburner/job"
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
// checked with all its workers; of the others, only that the file as a whole is YAML, so
// that a variable which only production has is not missed in development.
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
		return nil, d.problems.sorted()
	}
	return c, nil
}

func defaults(environment string) *Config {
	c := &Config{
		Environment: environment, BeanstalkURL: job.DefaultURL,
		DefaultQueue: job.DefaultQueue, DefaultPriority: job.DefaultPriority, DefaultTTR: job.DefaultTTR,
		Scheduler: Scheduler{Queue: "scheduler", Interval: 300 * time.Second, Priority: 100},
		Retry:     retry.Default(), Log: Log{Level: "info", Format: "text"}, Handlers: map[string]Handler{},
	}
	if environment == "development" {
		c.BeanstalkURL = Embedded
	}
	return c
}

func workerDefaults() *Worker {
	return &Worker{Threads: 10, Timeout: 3 * time.Second, BootTimeout: 30 * time.Second, LivenessTimeout: 60 * time.Second, PoisonDeaths: 3, PoisonReserves: 10}
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
	l.chooseWorker()
	l.override(fields)
	l.check()
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
		text, err := readFile(path)
		if errors.Is(err, os.ErrNotExist) {
			if l.Path == "" {
				continue
			}
			err = errors.New("there is no such file")
		}
		if err != nil {
			if inner, ok := errors.AsType[*os.PathError](err); ok {
				err = inner.Err
			}
			l.problem(&yaml.Node{}, "", "cannot be read: %v; name a file with --config", err)
			return nil, false
		}
		if len(text) > maxFile {
			l.problem(&yaml.Node{}, "", "has more than %d bytes, more than any configuration; is it the right file?", maxFile)
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

// readFile returns the text of a file, of a large one only that it is too large.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	return text, errors.Join(err, f.Close())
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
	l.problem(top, "", "has no environment %s%s; there are %s", l.root, didYouMean(l.root, there), listed(there))
	return false
}

// chooseWorker finds the named worker, the only one, or the one named default.
func (l *loader) chooseWorker() {
	l.config.WorkerName, l.config.Worker = "default", *workerDefaults()
	if l.AnyWorker {
		return
	}
	there := slices.Sorted(maps.Keys(l.workers))
	switch {
	case l.Worker != "":
		l.config.WorkerName = l.Worker
	case len(there) == 1:
		l.config.WorkerName = there[0]
	}
	name := l.config.WorkerName
	if worker := l.workers[name]; worker != nil {
		l.config.Worker = *worker
		return
	}
	if len(there) > 0 || name != "default" {
		at := l.places["workers"]
		l.problem(&yaml.Node{Line: at.line, Column: at.column}, join(l.root, "workers"), "has no worker %s%s; there are %s", name, didYouMean(name, there), listed(there))
	}
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// complete fills in defaults that are taken from another setting.
func (l *loader) complete() {
	c, w := l.config, &l.config.Worker
	from := func(key, other string) {
		l.sources["workers."+c.WorkerName+"."+key] = "default: " + other
	}
	if w.ShutdownTimeout == 0 {
		w.ShutdownTimeout = c.DefaultTTR
		from("shutdown_timeout", "default_ttr")
	}
	if len(w.Queues) == 0 {
		w.Queues = []string{c.DefaultQueue}
		from("queues", "default_queue")
	}
}
