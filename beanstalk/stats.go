package beanstalk

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	gobeanstalk "github.com/beanstalkd/go-beanstalk"
)

// JobStats is what the server knows of a job. The counters are since it was put, or,
// after a restart of the server, since the last record of it in the binlog.
type JobStats struct {
	ID                                          uint64
	Tube                                        string
	State                                       string // ready, delayed, reserved or buried
	Priority                                    uint32
	Age, Delay, TTR, TimeLeft                   time.Duration
	Reserves, Timeouts, Releases, Buries, Kicks int
}

// TubeStats counts what a tube holds and who looks at it.
type TubeStats struct {
	Name                                     string
	Urgent, Ready, Reserved, Delayed, Buried int
	TotalJobs                                uint64
	Using, Watching, Waiting                 int           // connections
	Pause, PauseLeft                         time.Duration // 0: not paused
	Deletes, Pauses                          uint64        // commands
}

// Jobs is how many jobs the tube holds in whatever state.
func (s TubeStats) Jobs() int { return s.Ready + s.Reserved + s.Delayed + s.Buried }

// ServerStats is what the server knows of itself.
type ServerStats struct {
	ID                       string // random for each server process
	Version, Hostname        string
	MaxJobSize               int
	Draining                 bool
	Uptime                   time.Duration
	Ready, Reserved          int
	Delayed, Buried          int
	TotalJobs                uint64
	Connections, TotalTubes  int
	Producers, Workers, Wait int
	Raw                      map[string]string // every field, quotes removed
}

// StatsJob asks what the server knows of a job.
func (c *Conn) StatsJob(ctx context.Context, id uint64) (JobStats, error) {
	op := fmt.Sprint("stats of job ", id)
	d, err := c.dictionary(ctx, op, func(l *link) (map[string]string, error) { return l.library.StatsJob(id) })
	return c.jobStats(op, d, err)
}

// StatsHeld asks what the server knows of a job that this connection holds. Once the
// connection is gone it answers ErrJobLost and does not dial.
func (c *Conn) StatsHeld(ctx context.Context, j *Job) (JobStats, error) {
	op := fmt.Sprint("stats of job ", j.ID)
	d := &dictionary{}
	err := c.runHeld(ctx, j, op, d.read(func(l *link) (map[string]string, error) { return l.library.StatsJob(j.ID) }))
	return c.jobStats(op, d, err)
}

func (c *Conn) jobStats(op string, d *dictionary, err error) (JobStats, error) {
	if err != nil {
		return JobStats{}, err
	}
	s := JobStats{
		ID: d.uint("id"), Tube: d.text("tube"), State: d.text("state"), Priority: uint32(d.uint("pri")),
		Age: d.seconds("age"), Delay: d.seconds("delay"), TTR: d.seconds("ttr"), TimeLeft: d.seconds("time-left"),
		Reserves: d.int("reserves"), Timeouts: d.int("timeouts"), Releases: d.int("releases"), Buries: d.int("buries"), Kicks: d.int("kicks"),
	}
	return s, c.checked(op, d)
}

// StatsTube asks what a tube holds. A tube that nobody refers to and that holds nothing is ErrNotFound.
func (c *Conn) StatsTube(ctx context.Context, tube string) (TubeStats, error) {
	op := "stats of tube " + tube
	if err := CheckTube(tube); err != nil {
		return TubeStats{}, c.failed(op, notSent(err))
	}
	d, err := c.dictionary(ctx, op, func(l *link) (map[string]string, error) {
		return gobeanstalk.NewTube(l.library, tube).Stats()
	})
	if err != nil {
		return TubeStats{}, err
	}
	s := TubeStats{
		Name: d.text("name"), Urgent: d.int("current-jobs-urgent"), Ready: d.int("current-jobs-ready"), Reserved: d.int("current-jobs-reserved"),
		Delayed: d.int("current-jobs-delayed"), Buried: d.int("current-jobs-buried"), TotalJobs: d.uint("total-jobs"),
		Using: d.int("current-using"), Watching: d.int("current-watching"), Waiting: d.int("current-waiting"),
		Pause: d.seconds("pause"), PauseLeft: d.seconds("pause-time-left"), Deletes: d.uint("cmd-delete"), Pauses: d.uint("cmd-pause-tube"),
	}
	return s, c.checked(op, d)
}

// Stats asks what the server knows of itself.
func (c *Conn) Stats(ctx context.Context) (ServerStats, error) {
	const op = "stats of the server"
	d, err := c.dictionary(ctx, op, func(l *link) (map[string]string, error) { return l.library.Stats() })
	return c.serverStats(op, d, err)
}

// StatsHolding asks what the server knows of itself that gave out a job. Once the
// connection is gone it answers ErrJobLost and does not dial.
func (c *Conn) StatsHolding(ctx context.Context, j *Job) (ServerStats, error) {
	const op = "stats of the server"
	d := &dictionary{}
	err := c.runHeld(ctx, j, op, d.read(func(l *link) (map[string]string, error) { return l.library.Stats() }))
	return c.serverStats(op, d, err)
}

func (c *Conn) serverStats(op string, d *dictionary, err error) (ServerStats, error) {
	if err != nil {
		return ServerStats{}, err
	}
	s := ServerStats{
		ID: d.text("id"), Version: d.text("version"), Hostname: d.fields["hostname"], MaxJobSize: d.int("max-job-size"),
		Draining: d.fields["draining"] == "true", Uptime: d.seconds("uptime"),
		Ready: d.int("current-jobs-ready"), Reserved: d.int("current-jobs-reserved"), Delayed: d.int("current-jobs-delayed"), Buried: d.int("current-jobs-buried"),
		TotalJobs: d.uint("total-jobs"), Connections: d.int("current-connections"), TotalTubes: d.int("current-tubes"),
		Producers: d.int("current-producers"), Workers: d.int("current-workers"), Wait: d.int("current-waiting"), Raw: d.fields,
	}
	return s, c.checked(op, d)
}

func (c *Conn) dictionary(ctx context.Context, op string, f func(*link) (map[string]string, error)) (*dictionary, error) {
	d := &dictionary{}
	err := c.run(ctx, op, d.read(f))
	return d, err
}

// checked reports the fields that were missing or no numbers.
func (c *Conn) checked(op string, d *dictionary) error {
	if len(d.problems) == 0 {
		return nil
	}
	return c.failed(op, fmt.Errorf("%w: %w", errProtocol, errors.Join(d.problems...)))
}

// dictionary reads fields of a stats reply and remembers what was wrong with them.
type dictionary struct {
	fields   map[string]string
	problems []error
}

// read makes a command of what asks for the fields.
func (d *dictionary) read(f func(*link) (map[string]string, error)) func(*link) error {
	return func(l *link) (err error) {
		d.fields, err = f(l)
		for key, value := range d.fields {
			d.fields[key] = unquote(value)
		}
		return err
	}
}

func (d *dictionary) text(key string) string {
	value, ok := d.fields[key]
	if !ok {
		d.problems = append(d.problems, fmt.Errorf("there is no field %s", key))
	}
	return value
}

func (d *dictionary) uint(key string) uint64 {
	n, err := strconv.ParseUint(d.text(key), 10, 64)
	if err != nil {
		d.problems = append(d.problems, fmt.Errorf("field %s: %w", key, err))
	}
	return n
}

func (d *dictionary) int(key string) int { return int(min(d.uint(key), math.MaxInt)) }

func (d *dictionary) seconds(key string) time.Duration {
	return time.Duration(min(d.uint(key), uint64(math.MaxInt64/time.Second))) * time.Second
}

// unquote removes the quotes in which beanstalkd 1.13 puts strings.
func unquote(value string) string {
	if inner, ok := strings.CutPrefix(value, `"`); ok {
		return strings.TrimSuffix(inner, `"`)
	}
	return value
}
