package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/postburner/postburner/beanstalk"
)

// The model: one tube in memory, and processes whose every command waits until the test
// lets it happen, so that any order of commands, and a crash between any two, can be tried.

type model struct {
	now    time.Duration
	nextID uint64
	jobs   map[uint64]*modelJob
}

type modelJob struct {
	state  string // ready, delayed, reserved
	holder *process
	due    time.Duration
	body   []byte
}

func (m *model) advance(d time.Duration) {
	m.now += d
	for _, j := range m.jobs {
		if j.state == "delayed" && j.due <= m.now {
			j.state = "ready"
		}
	}
}

// next returns the job that comes first in a state, 0 if there is none.
func (m *model) next(state string) (id uint64) {
	for _, i := range slices.Sorted(maps.Keys(m.jobs)) {
		j := m.jobs[i]
		if j.state == state && (id == 0 || state == "delayed" && j.due < m.jobs[id].due) {
			id = i
		}
	}
	return id
}

var errCrash = errors.New("the process has crashed")

// process is one scheduler, between whose commands the test decides.
type process struct {
	model   *model
	s       *Scheduler
	asks    chan struct{} // it wants to do a command
	granted chan error    // it may, or crashes
	done    chan error    // its turn has ended
	busy    bool
	crashed bool
}

func newProcess(m *model) *process {
	p := &process{model: m, asks: make(chan struct{}), granted: make(chan error), done: make(chan error)}
	p.s = &Scheduler{tube: p, opts: Options{
		Tube: "t", Interval: 300 * time.Second, Priority: 100, Timeout: time.Second, Logger: slog.New(slog.DiscardHandler),
	}}
	return p
}

// move lets the process do one command of its turn, which begins if it has none; crash ends its connection instead.
func (p *process) move(crash bool) {
	if !p.busy {
		p.busy = true
		go func() { p.done <- p.s.turn(context.Background()) }()
		<-p.asks
	}
	if crash {
		p.Disconnect()
		p.crashed = true
		p.granted <- errCrash
	} else {
		p.granted <- nil
	}
	select {
	case <-p.asks:
	case err := <-p.done:
		p.busy, p.crashed = false, false
		if err != nil {
			p.Disconnect()
		}
	}
}

// command waits for the test. After a crash nothing works until the turn is over.
func (p *process) command() error {
	p.asks <- struct{}{}
	if err := <-p.granted; err != nil || p.crashed {
		return errCrash
	}
	return nil
}

func (p *process) Disconnect() {
	for _, j := range p.model.jobs {
		if j.holder == p {
			j.state, j.holder = "ready", nil
		}
	}
}

func (p *process) Reserve(context.Context, time.Duration) (*beanstalk.Job, error) {
	if err := p.command(); err != nil {
		return nil, err
	}
	id := p.model.next("ready")
	if id == 0 {
		return nil, beanstalk.ErrTimeout
	}
	j := p.model.jobs[id]
	j.state, j.holder = "reserved", p
	return &beanstalk.Job{ID: id, Body: j.body}, nil
}

func (p *process) StatsTube(context.Context, string) (s beanstalk.TubeStats, err error) {
	if err := p.command(); err != nil {
		return s, err
	}
	for _, j := range p.model.jobs {
		switch j.state {
		case "ready":
			s.Ready++
		case "delayed":
			s.Delayed++
		case "reserved":
			s.Reserved++
		}
	}
	return s, nil
}

func (p *process) StatsJob(_ context.Context, id uint64) (s beanstalk.JobStats, err error) {
	if err := p.command(); err != nil {
		return s, err
	}
	j := p.model.jobs[id]
	if j == nil {
		return s, beanstalk.ErrNotFound
	}
	return beanstalk.JobStats{ID: id, State: j.state, TimeLeft: j.due - p.model.now}, nil
}

func (p *process) PeekDelayed(context.Context, string) (uint64, []byte, error) {
	if err := p.command(); err != nil {
		return 0, nil, err
	}
	id := p.model.next("delayed")
	if id == 0 {
		return 0, nil, beanstalk.ErrNotFound
	}
	return id, p.model.jobs[id].body, nil
}

func (p *process) KickJob(_ context.Context, id uint64) error {
	if err := p.command(); err != nil {
		return err
	}
	if j := p.model.jobs[id]; j != nil && j.state == "delayed" {
		j.state = "ready"
		return nil
	}
	return beanstalk.ErrNotFound
}

func (p *process) Put(_ context.Context, put beanstalk.Put) (uint64, error) {
	if err := p.command(); err != nil {
		return 0, err
	}
	p.model.nextID++
	p.model.jobs[p.model.nextID] = &modelJob{state: "delayed", due: p.model.now + put.Delay, body: put.Body}
	return p.model.nextID, nil
}

func (p *process) Delete(_ context.Context, j *beanstalk.Job) error {
	return p.held(j, func(*modelJob) { delete(p.model.jobs, j.ID) })
}

func (p *process) DeleteID(_ context.Context, id uint64) error {
	if err := p.command(); err != nil {
		return err
	}
	if j := p.model.jobs[id]; j == nil || j.state == "reserved" {
		return beanstalk.ErrNotFound
	}
	delete(p.model.jobs, id)
	return nil
}

func (p *process) Release(_ context.Context, j *beanstalk.Job, _ uint32, delay time.Duration) error {
	return p.held(j, func(m *modelJob) { m.state, m.holder, m.due = "delayed", nil, p.model.now+delay })
}

func (p *process) Bury(_ context.Context, j *beanstalk.Job, _ uint32) error {
	return p.held(j, func(m *modelJob) { m.state, m.holder = "buried", nil })
}

func (p *process) held(j *beanstalk.Job, f func(*modelJob)) error {
	if err := p.command(); err != nil {
		return err
	}
	m := p.model.jobs[j.ID]
	if m == nil || m.holder != p {
		return beanstalk.ErrNotFound
	}
	f(m)
	return nil
}

// watchdogs returns the generations that there are, sorted.
func (m *model) watchdogs(t interface{ Fatal(args ...any) }) (generations []uint64) {
	for _, j := range m.jobs {
		w, err := parseWatchdog(j.body)
		if errors.Is(err, errForeign) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		generations = append(generations, w.Generation)
	}
	slices.Sort(generations)
	return generations
}

// Whatever happens, and in whatever order: once there is a watchdog there is always one, the latest
// is never lost, and when things calm down there is exactly one.
func TestWatchdogsConvergeWhateverHappens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &model{jobs: map[uint64]*modelJob{}}
		for range rapid.IntRange(0, 4).Draw(t, "duplicates at first") {
			m.nextID++
			body := fmt.Appendf(nil, `{"scheduler":true,"interval":300,"generation":%d}`, rapid.IntRange(0, 3).Draw(t, "generation"))
			if rapid.IntRange(0, 5).Draw(t, "foreign") == 0 {
				body = []byte(`{"job_class":"Stray"}`)
			}
			m.jobs[m.nextID] = &modelJob{state: "delayed", due: time.Duration(rapid.IntRange(0, 400).Draw(t, "due")) * time.Second, body: body}
		}
		processes := make([]*process, rapid.IntRange(1, 4).Draw(t, "processes"))
		for i := range processes {
			processes[i] = newProcess(m)
		}
		defer func() { // whatever ends the test: no turn is left half done
			for _, p := range processes {
				for p.busy {
					p.move(true)
				}
			}
		}()
		latest, seen := uint64(0), false
		look := func() {
			generations := m.watchdogs(t)
			if len(generations) == 0 {
				if seen {
					t.Fatalf("there was a watchdog of generation %d, and now there is none", latest)
				}
				return
			}
			seen = true
			if got := generations[len(generations)-1]; got < latest {
				t.Fatalf("the latest watchdog was of generation %d and is now of %d", latest, got)
			} else {
				latest = got
			}
		}
		for range rapid.IntRange(0, 150).Draw(t, "moves") {
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				m.advance(time.Duration(rapid.IntRange(1, 400).Draw(t, "seconds")) * time.Second)
			case 1:
				processes[rapid.IntRange(0, len(processes)-1).Draw(t, "crash of")].move(true)
			default:
				processes[rapid.IntRange(0, len(processes)-1).Draw(t, "move of")].move(false)
			}
			look()
		}
		// Calm: nobody crashes, each process comes to its turn, time goes on a little.
		settled := 0
		for round := 0; settled < 3*len(processes); round++ {
			if round > 5000 {
				t.Fatalf("after %d rounds there are still the watchdogs %v", round, m.watchdogs(t))
			}
			p := processes[rapid.IntRange(0, len(processes)-1).Draw(t, "calm move of")]
			p.move(false)
			look()
			if !p.busy {
				m.advance(time.Second)
			}
			if len(m.watchdogs(t)) == 1 {
				settled++
			} else {
				settled = 0
			}
		}
		for _, p := range processes {
			for p.busy {
				p.move(false)
			}
		}
		if generations := m.watchdogs(t); len(generations) != 1 {
			t.Fatalf("watchdogs %v, want one", generations)
		}
	})
}
