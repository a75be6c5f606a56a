package config

import (
	"fmt"
	"math"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// field is one key: what there is to say about it is said here, once. The decoder, the
// suggestions, the variables, the effective configuration and the schema are made from it.
type field struct {
	name   string
	doc    string
	schema map[string]any
	set    func(node *yaml.Node) error        // of a value
	value  func() any                         // what it is now, to be shown
	fields []field                            // of a mapping with fixed keys, instead of set
	each   func(name string) (fields []field) // of a mapping with free keys, instead of set
	list   bool                               // its variable is separated by commas
	none   bool                               // its zero value is shown as none
	// required is that a mapping without it makes no sense.
	required bool
}

// key is a field with a value.
func key[T any](name string, dst *T, k kind[T], doc string) field {
	return field{
		name: name, doc: doc, schema: k.schema, none: k.none,
		set: func(node *yaml.Node) error {
			v, err := k.parse(node)
			if err == nil {
				*dst = v
			}
			return err
		},
		value: func() any { return *dst },
	}
}

const (
	day         = 24 * time.Hour
	year        = 365 * day
	maxPriority = math.MaxUint32
	// maxProcesses and maxThreads are far beyond what helps; a number above them is a slip of the hand.
	maxProcesses = 1000
	maxThreads   = 10_000
	// minMemory is what the smallest child needs to start.
	minMemory = 16_000_000
)

// environmentFields are the keys of an environment. They set what c points to.
func environmentFields(c *Config, workers func(name string) []field) []field {
	return []field{
		key("beanstalk_url", &c.BeanstalkURL, serverURL(), "beanstalk://HOST[:PORT], beanstalks://HOST[:PORT] (TLS), unix:///PATH, or embedded: the broker in this process, in memory"),
		key("default_queue", &c.DefaultQueue, anyText(nil), "queue of jobs that name none"),
		key("default_priority", &c.DefaultPriority, number[uint32](0, maxPriority), "priority of jobs that name none; 0 is first"),
		key("default_ttr", &c.DefaultTTR, duration(time.Second, year), "how long a worker may be silent before its job goes to another one"),
		key("scheduler_queue", &c.Scheduler.Queue, anyText(nil), "queue of the watchdog; a Ruby fleet in the same environment has its own on scheduler"),
		key("scheduler_interval", &c.Scheduler.Interval, duration(time.Second, year), "how long the watchdog sleeps"),
		key("scheduler_priority", &c.Scheduler.Priority, number[uint32](1, maxPriority), "priority of the watchdog"),
		{name: "retry", doc: "what becomes of a failed job", fields: []field{
			key("max_retries", &c.Retry.MaxRetries, number[int](0, math.MaxInt32), "retries after the first attempt"),
			key("base", &c.Retry.Base, duration(time.Second, year), "wait before the first retry"),
			key("factor", &c.Retry.Factor, fraction(1, 1000), "growth of the wait from one retry to the next"),
			key("max", &c.Retry.Max, duration(time.Second, 10*year), "the longest wait"),
			key("jitter", &c.Retry.Jitter, fraction(0, 1), "spread of each wait, as a part of it"),
			key("exhausted", &c.Retry.Exhausted, exhausted(), "what becomes of a job without attempts left"),
		}},
		{name: "log", doc: "how the worker logs", fields: []field{
			key("level", &c.Log.Level, oneOf("debug", "info", "warn", "error"), "the least level that is logged"),
			key("format", &c.Log.Format, oneOf("text", "json"), "one line of text, or of JSON, an entry"),
			key("file", &c.Log.File, anyText(nil), "the file that lines are appended to, opened anew on USR2; default: standard error"),
		}},
		{name: "workers", doc: "the workers of this environment, by name", each: workers},
		{name: "handlers", doc: "programs that handle a kind, by kind", each: func(kindName string) []field {
			return []field{handlerField(c, kindName)}
		}},
	}
}

// handlerField sets the program of a kind.
func handlerField(c *Config, kindName string) field {
	return field{
		name: "exec", doc: "the program and its arguments; the job's arguments come on its standard input",
		schema: listSchema, required: true,
		set: func(node *yaml.Node) error {
			words, err := texts(node, "[program, argument, …]")
			if err != nil {
				return err
			}
			if words[0] == "" {
				return parts{{node.Content[0], "names no program"}}
			}
			for i, word := range words {
				if strings.ContainsRune(word, 0) {
					return parts{{node.Content[i], "has a zero byte, which no program can be given"}}
				}
			}
			c.Handlers[kindName] = Handler{Exec: words}
			return nil
		},
		value: func() any { return c.Handlers[kindName].Exec },
	}
}

// listSchema is that of a list of texts.
var listSchema = map[string]any{"type": "array", "items": map[string]any{"type": "string"}, "minItems": 1}

// workerFields are the keys of a worker. They set what w points to.
func workerFields(w *Worker) []field {
	queues := field{
		name: "queues", doc: "the queues it works on; beanstalkd takes the lowest priority number over all of them, so their order does not matter",
		schema: listSchema,
		set: func(node *yaml.Node) error {
			names, err := texts(node, "[queue, …]")
			if err == nil {
				w.Queues = names
			}
			return err
		},
		value: func() any { return w.Queues },
		list:  true,
	}
	return []field{
		queues,
		key("forks", &w.Forks, number[int](0, maxProcesses), "child processes; 0: everything in this process"),
		key("threads", &w.Threads, number[int](1, maxThreads), "jobs at once in each process; forks × threads in all"),
		key("gc_limit", &w.GCLimit, orNone(number[int](1, math.MaxInt32)), "jobs of a process, which is then replaced (exit 99); default: none"),
		key("memory_limit", &w.MemoryLimit, orNone(size(minMemory)), "resident memory of a child, which is then replaced; default: none"),
		key("timeout", &w.Timeout, duration(time.Second, day), "of a reserve; how often an idle consumer hears from the server"),
		key("shutdown_timeout", &w.ShutdownTimeout, duration(time.Second, year), "how long running jobs may go on after TERM; default: default_ttr"),
		key("max_runtime", &w.MaxRuntime, orNone(duration(time.Second, year)), "deadline of one execution; default: none"),
		key("boot_timeout", &w.BootTimeout, duration(time.Second, day), "how long a child may take from its start until it first reports to the parent"),
		key("liveness_timeout", &w.LivenessTimeout, duration(5*time.Second, day), "a child that gives no sign of life for so long is replaced"),
		key("poison_deaths", &w.PoisonDeaths, orNone(number[int](1, math.MaxInt32)), "deaths of children after which the job that they were running is buried; none: never"),
		key("poison_reserves", &w.PoisonReserves, orNone(number[int](2, math.MaxInt32)), "reserves with nothing to show for them that make a job a suspect, which is buried after poison_deaths more of them; none: never"),
	}
}

// texts reads a list of scalars.
func texts(node *yaml.Node, want string) ([]string, error) {
	if node.Kind != yaml.SequenceNode {
		return nil, fmt.Errorf("is %s, want a list: %s", nodeName(node), want)
	}
	if len(node.Content) == 0 {
		return nil, fmt.Errorf("is an empty list, want %s", want)
	}
	words := make([]string, len(node.Content))
	var wrong parts
	for i, written := range node.Content {
		value := resolved(written)
		if value.Kind != yaml.ScalarNode || isNull(value) {
			wrong = append(wrong, part{written, fmt.Sprintf("is %s as item %d, want text", nodeName(value), i+1)})
		}
		words[i] = value.Value
	}
	return words, wrong.orNil()
}

func names(fields []field) []string {
	all := make([]string, len(fields))
	for i, f := range fields {
		all[i] = f.name
	}
	return all
}

func find(fields []field, name string) (field, bool) {
	for _, f := range fields {
		if f.name == name {
			return f, true
		}
	}
	return field{}, false
}
