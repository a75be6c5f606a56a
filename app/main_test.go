package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/postburner/postburner/job"
)

// addrVariable moves the embedded broker of the programs below to another address, so
// that a server on beanstalkd's own port is not in the way.
const addrVariable = "TEST_EMBEDDED_ADDR"

const raceVariable = "GORACE"

// The test binary plays the programs that the tests run, child processes included.
func TestMain(m *testing.M) {
	// With the race detector each of the many processes would sleep for a second before it exits.
	if err := os.Setenv(raceVariable, "atexit_sleep_ms=0 "+os.Getenv(raceVariable)); err != nil {
		panic(err)
	}
	called := os.Args[0] // testscript leaves only the name of it
	as := func(registry *job.Registry) func() {
		return func() {
			os.Args[0] = called
			play(registry)
		}
	}
	testscript.Main(m, map[string]func(){
		"postburner": as(nil),                                    // the stock binary
		"goworker":   as(goHandlers()),                           // a user's own
		"handler":    playHandler,                                // a program that handles jobs
		"goinit":     func() { os.Args[0] = called; playInit() }, // goworker as PID 1 starts it
	})
}

func play(registry *job.Registry) {
	if os.Getenv(addrVariable) == "" {
		Main(registry)
	}
	os.Exit(Run(context.Background(), Options{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Registry: registry, embeddedAddr: os.Getenv(addrVariable),
	}))
}

// goHandlers are those of the user's own binary.
func goHandlers() *job.Registry {
	r := job.NewRegistry()
	r.Handle("Greet", job.HandlerFunc(func(_ context.Context, j *job.Job) error {
		j.Log().Info("hello from Go")
		return nil
	}))
	r.Handle("Crash", job.HandlerFunc(func(context.Context, *job.Job) error { panic("no luck") }))
	r.Handle("Hold", job.HandlerFunc(func(ctx context.Context, j *job.Job) error {
		j.Log().Info("holding")
		<-ctx.Done()
		return context.Cause(ctx)
	}))
	r.Handle("Stubborn", job.HandlerFunc(func(_ context.Context, j *job.Job) error {
		j.Log().Info("holding")
		select {}
	}))
	return r
}

// playHandler is `handler EXITCODE`: it says what it read and exits.
func playHandler() {
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("handler of %s got %s", os.Getenv("POSTBURNER_JOB_CLASS"), line)
	code, err := strconv.Atoi(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, errors.Join(errors.New("usage: handler EXITCODE"), err))
		code = 1
	}
	os.Exit(code)
}
