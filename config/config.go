// Package config reads postburner.yml: environment → settings → workers → worker, as
// the Ruby gem has it, with Rails-style anchors. It reports every problem at once, each
// with its place, and says of each value where it comes from.
//
// Precedence: flag, POSTBURNER_* variable, file, default.
package config

import (
	"time"

	"github.com/postburner/postburner/job"
	"github.com/postburner/postburner/retry"
)

// Config is what one worker of one environment is to do, resolved: defaults filled in,
// variables expanded. It encodes as JSON and back.
type Config struct {
	File        string // "" if there is none
	Environment string
	WorkerName  string

	BeanstalkURL    string
	DefaultQueue    string
	DefaultPriority uint32
	DefaultTTR      time.Duration
	Scheduler       Scheduler
	Retry           retry.Policy
	Log             Log
	Handlers        map[string]Handler // by kind
	Worker          Worker

	// Sources says where each value comes from, by its path below the environment.
	Sources map[string]string

	places map[string]place
}

// place is where a value stands in the file.
type place struct{ line, column int }

// Embedded is the beanstalk_url of the broker in the worker's own process.
const Embedded = "embedded"

// Scheduler is the settings of the scheduler tube.
type Scheduler struct {
	Queue    string
	Interval time.Duration
	Priority uint32
}

// Log is how the worker logs.
type Log struct {
	Level  string // debug, info, warn or error
	Format string // text or json
	File   string // "": standard error
}

// Handler is a program that handles a kind.
type Handler struct {
	Exec []string // program and arguments
}

// Worker is the settings of one worker.
type Worker struct {
	Queues          []string
	Forks           int // 0: everything in one process
	Threads         int
	GCLimit         int   // 0: none
	MemoryLimit     int64 // bytes; 0: none
	Timeout         time.Duration
	ShutdownTimeout time.Duration
	MaxRuntime      time.Duration // 0: none
	BootTimeout     time.Duration
	LivenessTimeout time.Duration
	PoisonDeaths    int // 0: never
	PoisonReserves  int // 0: never
}

// Place returns where in the file a value stands, by its path below the environment;
// ok is false if it comes from elsewhere. It is not part of the JSON.
func (c *Config) Place(path string) (line, column int, ok bool) {
	at, ok := c.places[path]
	return at.line, at.column, ok
}

// Tube returns the name of a queue's tube.
func (c *Config) Tube(queue string) string { return job.Tube(c.Environment, queue) }

// Tubes returns the names of the tubes that the worker watches.
func (c *Config) Tubes() []string {
	tubes := make([]string, len(c.Worker.Queues))
	for i, queue := range c.Worker.Queues {
		tubes[i] = c.Tube(queue)
	}
	return tubes
}

// SchedulerTube returns the name of the tube of the watchdog.
func (c *Config) SchedulerTube() string { return c.Tube(c.Scheduler.Queue) }
