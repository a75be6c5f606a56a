//go:build unix

package app

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/broker"
)

// TestScripts runs the command lines of testdata/script. Each has a server of its own, at
// $URL, and two addresses that are free, $FREE_ADDR and the embedded broker's.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setUpScript,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"code":   scriptCode,
			"await":  scriptAwait,
			"bodies": scriptBodies,
			"done":   scriptDone,
			"drain":  scriptDrain,
			"retry":  scriptRetry,
		},
	})
}

// brokerKey is where a script's server is found.
type brokerKey struct{}

func setUpScript(env *testscript.Env) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	b := broker.New(broker.Options{})
	served := make(chan error, 1)
	go func() { served <- b.Serve(context.Background(), listener) }()
	env.Defer(func() {
		_ = b.Close() // always nil
		if err := <-served; err != nil {
			panic(err)
		}
	})
	env.Values[brokerKey{}] = b
	env.Setenv(raceVariable, os.Getenv(raceVariable))
	env.Setenv("URL", "beanstalk://"+listener.Addr().String())
	env.Setenv("ADDR", listener.Addr().String())
	for _, name := range []string{"FREE_ADDR", addrVariable} {
		addr, err := freeAddr()
		if err != nil {
			return err
		}
		env.Setenv(name, addr)
	}
	return nil
}

// freeAddr finds an address on which nothing listens, outside of where systems take the ports of outgoing connections.
func freeAddr() (string, error) {
	var problems []error
	for range 100 {
		listener, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", 20_000+rand.IntN(10_000)))
		if err == nil {
			return listener.Addr().String(), listener.Close()
		}
		problems = append(problems, err)
	}
	return "", errors.Join(problems...)
}

// scriptCode is `code N command…`: the command has to exit with N.
func scriptCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N command…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// jobsIn returns a tube's jobs of a state, or of all.
func jobsIn(b *broker.Broker, tube, state string) (jobs []broker.Job) {
	for _, j := range b.Jobs(tube) {
		if state == "all" || j.State == state {
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// scriptAwait is `await TUBE STATE N`: it waits until the tube holds N jobs of the state, or of all.
func scriptAwait(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: await TUBE STATE|all N")
	}
	want, err := strconv.Atoi(args[2])
	ts.Check(err)
	b := ts.Value(brokerKey{}).(*broker.Broker)
	eventually(ts.Fatalf, func() (bool, string) {
		got := len(jobsIn(b, args[0], args[1]))
		return got == want, fmt.Sprintf("%s holds %d jobs (%s), want %d", args[0], got, args[1], want)
	})
}

// scriptDrain is `drain`: the server takes no new jobs from now on.
func scriptDrain(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: drain")
	}
	ts.Value(brokerKey{}).(*broker.Broker).Fail(broker.Faults{Draining: true})
}

// scriptDone is `done ADDR TUBE N`: it waits until N jobs of the tube have been deleted on a server.
func scriptDone(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: done ADDR TUBE N")
	}
	want, err := strconv.ParseUint(args[2], 10, 64)
	ts.Check(err)
	conn, err := beanstalk.New(beanstalk.Options{URL: "beanstalk://" + args[0]})
	ts.Check(err)
	defer func() { _ = conn.Close() }() // always nil
	eventually(ts.Fatalf, func() (bool, string) {
		stats, err := conn.StatsTube(context.Background(), args[1])
		return err == nil && stats.Deletes == want, fmt.Sprintf("%d jobs of %s are deleted (%v), want %d", stats.Deletes, args[1], err, want)
	})
}

// scriptRetry is `retry command…`: it runs the command until it exits with 0.
func scriptRetry(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: retry command…")
	}
	eventually(ts.Fatalf, func() (bool, string) {
		err := ts.Exec(args[0], args[1:]...)
		return err == nil, fmt.Sprint(args, ": ", err)
	})
}

// eventually waits until the condition holds; its text says what was seen last.
func eventually(fatal func(format string, args ...any), condition func() (bool, string)) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-tick.C {
		ok, seen := condition()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			fatal("not within a minute: %s", seen)
		}
	}
}

// scriptBodies is `bodies TUBE`: it prints what is in the tube, a line a job.
func scriptBodies(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: bodies TUBE")
	}
	for _, j := range jobsIn(ts.Value(brokerKey{}).(*broker.Broker), args[0], "all") {
		_, err := fmt.Fprintf(ts.Stdout(), "pri=%d delay=%d ttr=%d state=%s %s\n", j.Priority, int(j.Delay.Seconds()), int(j.TTR.Seconds()), j.State, j.Body)
		ts.Check(err)
	}
}
