package relay

import (
	"bytes"
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

// killAfter is how long a program may take to end after TERM, when its job's context has ended.
const killAfter = 5 * time.Second

// Exec is a handler that starts a program for each job, without a shell.
//
// The program finds the arguments as one line of JSON on its standard input (see
// job.Envelope.PlainArguments), and what else there is to know in its environment:
// POSTBURNER_JOB_ID, _JOB_CLASS, _QUEUE, _TUBE, _ATTEMPT, _BEANSTALKD_ID, _ENV, _SCHEDULE
// and _RUN_AT; of the worker's own environment only PATH, HOME, LANG and TMPDIR. Lines of its standard output and
// error are logged as the job's, so many of them at most. When the job's context ends, its process group
// is sent TERM, and KILL 5 s later.
type Exec struct {
	Program     string // a path, or a name that is looked up on PATH
	Args        []string
	Environment string // POSTBURNER_ENV
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
	cmd.WaitDelay = killAfter
	group(cmd)
	err = cmd.Run()
	endGroup(cmd)
	stdout.flush()
	stderr.flush()
	out.sum()
	return e.result(ctx, err)
}

// result reads how the program ended.
func (e *Exec) result(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, exec.ErrWaitDelay) { // it succeeded, and left behind something that holds its output open
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("program %s was ended: %w", e.Program, context.Cause(ctx))
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return fmt.Errorf("run program %s: %w", e.Program, err)
	}
	err = fmt.Errorf("program %s: %s", e.Program, exit)
	if exit.ExitCode() == ExitDataErr {
		return job.Bury(err)
	}
	return err
}

// kept are the variables of the worker that a program sees. Others may be secrets.
var kept = []string{"PATH", "HOME", "LANG", "TMPDIR", "SystemRoot"}

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
