package swarm

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// process is a child as the swarm holds it.
type process struct {
	id       int
	slot     int
	cmd      *exec.Cmd
	guard    *os.File
	status   *os.File
	board    *Board
	commands chan string
}

// start starts the child of a slot. Its messages and its end go to events.
func (s *Swarm) start(slot, id int) (*process, error) {
	cmd, err := s.opts.Command(slot)
	if err != nil {
		return nil, err
	}
	config, err := s.opts.Config(slot)
	if err != nil {
		return nil, err
	}
	p := &process{id: id, slot: slot, cmd: cmd, commands: make(chan string, 4)}
	inherited, err := p.pipes(s.opts.Threads)
	defer func() { // the child has its own copies by then
		for _, file := range inherited {
			_ = file.Close()
		}
	}()
	if err != nil {
		p.release()
		return nil, err
	}
	cmd.ExtraFiles = inherited
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, s.environment...)
	detach(cmd)
	if err := cmd.Start(); err != nil {
		p.release()
		return nil, err
	}
	s.running.Go(func() { p.instruct(config) })
	s.running.Go(func() { s.listen(p) })
	return p, nil
}

// pipes makes what the child inherits, in the order of guardFD, statusFD and boardFD.
func (p *process) pipes(threads int) (inherited []*os.File, err error) {
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
	board, err := boardFile(threads)
	if err != nil {
		return inherited, err
	}
	inherited = append(inherited, board)
	memory, err := share(board, threads*rowSize)
	if err != nil {
		return inherited, err
	}
	p.board = boardOn(memory)
	return inherited, nil
}

// release gives back what the parent holds of a child.
func (p *process) release() {
	for _, file := range []*os.File{p.guard, p.status} {
		if file != nil {
			_ = file.Close() // a pipe whose other end may be gone
		}
	}
	if p.board != nil {
		_ = unshare(p.board.memory) // mapped by share with just this length
		p.board = nil
	}
}

// instruct writes the configuration and then the commands, until the child has ended.
func (p *process) instruct(config []byte) {
	if _, err := p.guard.Write(append(config, '\n')); err != nil {
		return // the child has ended, which listen reports
	}
	for command := range p.commands {
		if _, err := io.WriteString(p.guard, command); err != nil {
			return
		}
	}
}

// listen passes on what the child says, and at last how it ended.
func (s *Swarm) listen(p *process) {
	said := make(chan struct{})
	go func() {
		defer close(said)
		lines := bufio.NewScanner(p.status)
		for lines.Scan() {
			m, err := parseMessage(lines.Bytes())
			if err == nil {
				var event any
				if event, err = m.event(p.id); err == nil {
					s.events <- event
				}
			}
			if err != nil {
				s.opts.Logger.Error("a child said something that is no message; it is ignored", "slot", p.slot, "pid", p.cmd.Process.Pid, "error", err)
			}
		}
	}()
	err := p.cmd.Wait()
	// What it said before it ended is read to the end; a program that it left behind may hold the pipe open.
	if deadlineErr := p.status.SetReadDeadline(time.Now().Add(time.Second)); deadlineErr == nil {
		<-said
	}
	exit := exitOf(p.cmd)
	exit.Slot = p.slot
	exit.Running = p.board.Rows()
	if exitErr := new(exec.ExitError); err != nil && !errors.As(err, &exitErr) {
		s.opts.Logger.Error("waiting for a child", "slot", p.slot, "error", err)
	}
	s.events <- evExited{p.id, exit}
}

// signal sends a signal to the child; one that has ended needs none.
func (p *process) signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %v to child %d: %w", sig, p.cmd.Process.Pid, err)
	}
	return nil
}
