package relay

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/postburner/postburner/job"
)

// Exit codes by which a program says what becomes of its job, those of sysexits.h. Any
// other than 0, ExitTempFail included, is a failed attempt.
const (
	ExitDataErr  = 65 // EX_DATAERR: the job is buried, it will never succeed
	ExitTempFail = 75 // EX_TEMPFAIL: try again later
)

// killAfter is the default of Exec.KillAfter: well before the worker takes a handler for
// stuck, and before its parent, 5 s after the shutdown timeout, kills it and could not kill the program.
const killAfter = 2 * time.Second

// Exec is a handler that starts a program for each job, without a shell, in the worker's working directory.
//
// The program finds the arguments as one line of JSON on its standard input (see
// job.Envelope.PlainArguments), and what else there is to know in its environment:
// POSTBURNER_JOB_ID, _JOB_CLASS, _QUEUE, _TUBE, _ATTEMPT, _BEANSTALKD_ID and _ENV, and for
// a job that a schedule put _SCHEDULE and _RUN_AT. Of the worker's own environment, which holds secrets,
// it sees PATH, HOME and LANG alone. Each line of its standard output and error becomes a log
// line of the job, up to 1,000 lines of 4,096 bytes.
//
// Exit code 0 says that the job is done, whatever the program leaves running; 65 buries
// it; any other code, or a signal, is a failed attempt. When the job's context ends, the
// program's process group is sent TERM, and KILL some seconds later; a program that gives up then
// must not exit with 0. What a failed program leaves of its group is killed. If the worker is
// killed itself, Linux kills the program with it, though not what that has started; elsewhere it
// runs on while its job runs again.
type Exec struct {
	Program     string // a path, or a name that is looked up on PATH
	Args        []string
	Environment string // POSTBURNER_ENV
	// KillAfter is how long a program may take to end after TERM, and how long its output is
	// waited for if it has ended and left something running that holds it open. Default 2 s.
	KillAfter time.Duration
}

// Check reports why the program cannot be started.
func (e *Exec) Check() error {
	_, err := exec.LookPath(e.Program)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("program %s is not on PATH", e.Program)
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("program %s does not exist", e.Program)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("program %s is not executable: chmod +x it", e.Program)
	}
	return fmt.Errorf("program %s: %w", e.Program, err)
}

// HandleJob runs the program for one job.
func (e *Exec) HandleJob(ctx context.Context, j *job.Job) error {
	arguments, err := j.PlainArguments()
	if err != nil {
		return err
	}
	var line bytes.Buffer
	if err := compact(&line, arguments); err != nil {
		return err
	}
	environment, err := e.environment(ctx, j)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, e.Program, e.Args...)
	cmd.Env = environment
	cmd.Stdin = &line
	out := &lines{log: j.Log().With("program", e.Program)}
	stdout, stderr := out.stream("stdout", slog.LevelInfo), out.stream("stderr", slog.LevelWarn)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.WaitDelay = cmp.Or(e.KillAfter, killAfter)
	group(cmd)
	err = cmd.Run()
	endGroup(cmd)
	stdout.flush()
	stderr.flush()
	out.sum()
	if errors.Is(err, exec.ErrWaitDelay) {
		out.log.Warn("the program has left something running that holds its output open; what that writes is lost", "waited", cmd.WaitDelay)
	}
	return e.result(ctx, cmd, err)
}

// result reads how the program ended.
func (e *Exec) result(ctx context.Context, cmd *exec.Cmd, err error) error {
	if cmd.ProcessState == nil {
		if ctx.Err() != nil {
			return fmt.Errorf("program %s was not started: %w", e.Program, context.Cause(ctx))
		}
		return fmt.Errorf("start program %s: %w", e.Program, err)
	}
	switch {
	case cmd.ProcessState.Success():
		return nil
	case cmd.ProcessState.ExitCode() == ExitDataErr:
		return job.Bury(fmt.Errorf("program %s: exit status %d", e.Program, ExitDataErr))
	case ctx.Err() != nil:
		return fmt.Errorf("program %s was ended (%v): %w", e.Program, cmd.ProcessState, context.Cause(ctx))
	}
	return fmt.Errorf("program %s: %v", e.Program, cmd.ProcessState)
}

// kept are the variables of the worker that a program sees. Others may be secrets.
var kept = []string{"PATH", "HOME", "LANG"}

func (e *Exec) environment(ctx context.Context, j *job.Job) ([]string, error) {
	attempt, err := j.Attempt(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask for the attempt: %w", err)
	}
	var variables []string
	for _, name := range kept {
		if value, ok := os.LookupEnv(name); ok {
			variables = append(variables, name+"="+value)
		}
	}
	set := func(name, value string) {
		if strings.IndexByte(value, 0) < 0 { // which no variable can hold
			variables = append(variables, "POSTBURNER_"+name+"="+value)
		}
	}
	set("JOB_ID", j.ID)
	set("JOB_CLASS", j.Kind)
	set("QUEUE", j.Queue)
	set("TUBE", j.Tube)
	set("ATTEMPT", strconv.Itoa(attempt))
	set("BEANSTALKD_ID", strconv.FormatUint(j.BeanstalkID, 10))
	set("ENV", e.Environment)
	if j.Schedule != nil {
		set("SCHEDULE", j.Schedule.Name)
		set("RUN_AT", j.Schedule.RunAt.UTC().Format(time.RFC3339))
	}
	return variables, nil
}
