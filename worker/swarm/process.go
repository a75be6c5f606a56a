package swarm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// lastWords bounds how long the parent reads a dead child's pipes: a program the child left
// behind may hold them open.
const lastWords = time.Second

// process is a child as the parent holds it.
type process struct {
	id, slot int
	cmd      *exec.Cmd
	began    time.Time
	guard    *os.File
	status   *os.File
	board    *Board
	commands *outbox // closed when the child has ended

	// What follows is guarded by Swarm.mu.
	heartbeat Heartbeat
	rss       int64
}

// order is a spawn with what the child is to know from the start.
type order struct {
	spawn
	suspects []Suspect
	vigilant bool
}

// started tells the loop that a process exists, and hands it over.
type started struct{ p *process }

// supervise is the life of one child, in a goroutine of its own. The swarm hears of it by spawnFailed, or by
// started, any number of heard, and exited, in this order.
func (s *Swarm) supervise(ctx context.Context, a order) {
	p, err := s.start(ctx, a)
	if err != nil {
		s.events <- spawnFailed{a.id, err}
		return
	}
	s.events <- started{p}
	s.supervising.Go(func() { p.writeCommands(s) })
	silent := make(chan struct{})
	s.supervising.Go(func() { s.listen(p, silent) })

	err = p.cmd.Wait()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		s.opts.Logger.Error("waiting for a child", "slot", p.slot, "pid", p.pid(), "error", err)
	}
	if err := p.status.SetReadDeadline(time.Now().Add(lastWords)); err != nil {
		_ = p.status.Close() // ends listen just as well
	}
	<-silent
	exit := Exit{Code: p.cmd.ProcessState.ExitCode(), Signal: signalName(p.cmd.ProcessState), Age: time.Since(p.began), Running: p.board.Rows()}
	s.events <- exited{p.id, exit}
}

// start starts a child, unless ctx has ended.
func (s *Swarm) start(ctx context.Context, a order) (*process, error) {
	cmd, err := s.opts.Command(a.slot)
	if err != nil {
		return nil, fmt.Errorf("make the command of a child: %w", err)
	}
	config, err := s.opts.Config(a.slot)
	if err != nil {
		return nil, fmt.Errorf("make the configuration of a child: %w", err)
	}
	line, err := encodeLine(handshake{
		Slot: a.slot, Threads: s.opts.Threads, Quiet: a.quiet, ShutdownTimeout: int64(s.opts.ShutdownTimeout), Config: config,
		Suspects: a.suspects, Vigilant: a.vigilant,
	})
	if err != nil {
		return nil, fmt.Errorf("encode the configuration of a child: %w", err)
	}
	p := &process{id: a.id, slot: a.slot, cmd: cmd, commands: newOutbox()}
	p.commands.put(string(line))
	if err := s.launch(ctx, p); err != nil {
		p.release()
		return nil, err
	}
	return p, nil
}

// launch makes what the child inherits and starts it.
func (s *Swarm) launch(ctx context.Context, p *process) error {
	inherited, err := p.files(s.opts.Threads)
	defer func() { // the child has its own copies by then
		for _, file := range inherited {
			_ = file.Close()
		}
	}()
	if err != nil {
		return err
	}
	cmd := p.cmd
	cmd.Env = withDefaults(cmd.Environ(), s.shares)
	cmd.Stdin = nil
	if cmd.Stdout == nil {
		cmd.Stdout = os.Stdout
	}
	if cmd.Stderr == nil {
		cmd.Stderr = os.Stderr
	}
	if cmd.WaitDelay == 0 {
		cmd.WaitDelay = lastWords // else a program that holds its output open holds up the slot
	}
	handDown(cmd, inherited[0], inherited[1], inherited[2])
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("start a child: the swarm is stopping: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start a child: %w", err)
	}
	p.began = time.Now()
	return nil
}

// files makes what the child inherits: its end of the guard pipe, of the status pipe, and the board.
func (p *process) files(threads int) (inherited []*os.File, err error) {
	guard, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make the guard pipe: %w", err)
	}
	p.guard = write
	inherited = append(inherited, guard)
	read, status, err := os.Pipe()
	if err != nil {
		return inherited, fmt.Errorf("make the status pipe: %w", err)
	}
	p.status = read
	inherited = append(inherited, status)
	board, err := boardFile(threads * rowSize)
	if err != nil {
		return inherited, err
	}
	inherited = append(inherited, board)
	memory, err := share(board, threads*rowSize, false)
	if err != nil {
		return inherited, err
	}
	p.board = boardOn(memory)
	return inherited, nil
}

// release gives back what the parent holds of a child.
func (p *process) release() {
	p.commands.close()
	for _, file := range []*os.File{p.guard, p.status} {
		if file != nil {
			_ = file.Close() // a pipe whose other end is gone
		}
	}
	if p.board != nil && p.board.memory != nil {
		_ = unshare(p.board.memory) // mapped by share with just this length
		p.board = &Board{}
	}
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// writeCommands writes the first message and then the commands, until the child has ended. It
// blocks while the child does not read; nothing else waits for it.
func (p *process) writeCommands(s *Swarm) {
	broken := false
	for lines := p.commands.take(); lines != nil; lines = p.commands.take() {
		if broken {
			continue
		}
		_, err := p.guard.WriteString(strings.Join(lines, ""))
		if broken = err != nil; broken && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, os.ErrClosed) {
			s.opts.Logger.Error("a child cannot be told anything", "slot", p.slot, "pid", p.pid(), "error", err)
		}
	}
}

// listen passes on what a child says, until it has ended.
func (s *Swarm) listen(p *process, silent chan<- struct{}) {
	defer close(silent)
	complained := false
	lines := bufio.NewReader(p.status)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return // the other end is closed, or the child has ended and something else keeps it open
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			if !complained {
				complained = true
				s.opts.Logger.Error("a child said something that is no message; that is ignored", "slot", p.slot, "pid", p.pid(), "error", err)
			}
			continue
		}
		s.events <- heard{p.id, m}
	}
}

// signal sends a signal to the child; one that has ended needs none.
func (p *process) signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %v to child %d: %w", sig, p.pid(), err)
	}
	return nil
}

// withDefaults adds the variables that an environment does not have, or has empty.
func withDefaults(environment, variables []string) []string {
	for _, variable := range variables {
		name, _, _ := strings.Cut(variable, "=")
		found := false
		for _, present := range environment {
			value, ok := strings.CutPrefix(present, name+"=")
			found = found || ok && value != ""
		}
		if !found {
			environment = append(environment, variable)
		}
	}
	return environment
}
