// Package brokertest starts servers for tests: the embedded broker, or the real
// beanstalkd. They listen on a free port of 127.0.0.1 and end with the test.
package brokertest

import (
	"context"
	"net"
	"os"
	"testing"

	"github.com/postburner/postburner/broker"
)

// Server is a server that a test talks to.
type Server interface {
	Addr() string // host:port
	URL() string  // beanstalk://host:port
}

// Embedded is a broker in the test's own process.
type Embedded struct {
	*broker.Broker
	addr string
}

// Addr returns host and port.
func (e *Embedded) Addr() string { return e.addr }

// URL returns the address as a beanstalk_url.
func (e *Embedded) URL() string { return "beanstalk://" + e.addr }

// Start starts an embedded broker.
func Start(t testing.TB) *Embedded {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("start the embedded broker: %v", err)
	}
	b := broker.New(broker.Options{})
	served := make(chan error, 1)
	go func() { served <- b.Serve(context.Background(), listener) }()
	t.Cleanup(func() {
		_ = b.Close() // always nil
		if err := <-served; err != nil {
			t.Errorf("the embedded broker ended: %v", err)
		}
	})
	return &Embedded{b, listener.Addr().String()}
}

// Each runs a test against the embedded broker and against the real beanstalkd, as subtests.
func Each(t *testing.T, test func(t *testing.T, server Server)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) { test(t, Start(t)) })
	t.Run("beanstalkd", func(t *testing.T) { test(t, StartBeanstalkd(t)) })
}

// required reports whether a missing beanstalkd fails the tests instead of skipping them.
func required() bool {
	return os.Getenv("CI") == "true" || os.Getenv("POSTBURNER_REQUIRE_BEANSTALKD") == "1"
}
