//go:build unix

package beanstalk_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/broker/brokertest"
)

func TestBeanstalkdInDrainModeRefusesPuts(t *testing.T) {
	server := brokertest.StartBeanstalkd(t)
	conn := open(t, server)
	put(t, conn, "default", "x")
	server.Signal(syscall.SIGUSR1)
	eventually(t, "it drains", func() bool {
		stats, err := conn.Stats(t.Context())
		return err == nil && stats.Draining
	})
	_, err := conn.Put(t.Context(), beanstalk.Put{Tube: "default", TTR: time.Minute})
	want(t, "put", err, beanstalk.ErrDraining)
}
