//go:build unix

// Package integration_test runs whole workers: real processes, real signals and
// the real beanstalkd. The test binary itself plays the worker, so that a test's
// handlers are Go code beside the test.
package integration_test

import (
	"os"
	"testing"

	"github.com/postburner/postburner/app"
)

// programVariable makes the test binary play a program instead of running tests.
// Child processes inherit it and so play the same one.
const programVariable = "POSTBURNER_TEST_PROGRAM"

func TestMain(m *testing.M) {
	switch os.Getenv(programVariable) {
	case "worker": // a user's own binary with Go handlers
		app.Main(handlers())
	case "stock": // the stock binary
		app.Main(nil)
	}
	os.Exit(m.Run())
}
