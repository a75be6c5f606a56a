package app

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/postburner/postburner/worker"
	"github.com/postburner/postburner/worker/swarm"
)

// notifier tells systemd how the service is, over the socket of sd_notify(3). Without
// one it does nothing. The library for this reads the environment at each call; here it
// is taken out at once, so that no child and no handler can speak for the service.
type notifier struct {
	logger   *slog.Logger
	socket   string        // "": nobody listens
	watchdog time.Duration // how often systemd wants to hear that all is well; 0: it does not

	mu       sync.Mutex // guards what follows
	ready    bool
	status   string
	patted   time.Time // when the watchdog was last told
	troubled bool      // the last message could not be sent
}

// takeNotifier takes the variables of sd_notify out of the environment.
func takeNotifier(logger *slog.Logger) *notifier {
	n := &notifier{logger: logger, socket: os.Getenv("NOTIFY_SOCKET")}
	usec, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	pid := os.Getenv("WATCHDOG_PID")
	if err == nil && usec > 0 && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		n.watchdog = time.Duration(usec) * time.Microsecond
	}
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		_ = os.Unsetenv(name) // fails for malformed names only
	}
	return n
}

// isReady tells, once, that the service works.
func (n *notifier) isReady() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.ready {
		n.ready = true
		n.send("READY=1")
	}
}

// isReloading tells that a reload begins; isReloaded that it is over.
func (n *notifier) isReloading() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.send("RELOADING=1", fmt.Sprint("MONOTONIC_USEC=", monotonic().Microseconds()))
}

func (n *notifier) isReloaded() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.send("READY=1")
}

func (n *notifier) isStopping() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.send("STOPPING=1")
}

// isWell tells how the service is, and pats the watchdog when it is time. It is to be
// called each second, and only while all is well.
func (n *notifier) isWell(status string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var lines []string
	if status != n.status {
		n.status = status
		lines = append(lines, "STATUS="+status)
	}
	if n.watchdog > 0 && time.Since(n.patted) >= n.watchdog/3 {
		n.patted = time.Now()
		lines = append(lines, "WATCHDOG=1")
	}
	if len(lines) > 0 {
		n.send(lines...)
	}
}

// observe tells what a swarm's events mean for the service.
func (n *notifier) observe(e swarm.Event) {
	switch e.Type {
	case swarm.EventReady:
		n.isReady()
	case swarm.EventRestartDone, swarm.EventRestartFailed, swarm.EventRestartDropped:
		n.isReloaded()
	}
}

// summary is how a swarm is, in one line.
func summary(s swarm.Status) string {
	ready, children := 0, 0
	for _, slot := range s.Slots {
		for _, c := range slot.Children {
			children++
			if c.State == swarm.StateReady {
				ready++
			}
		}
	}
	text := fmt.Sprintf("%d of %d children ready, %d of %d consumers busy, %d jobs started", ready, children, s.Total.Busy, s.Total.Threads, s.Total.Started)
	for _, more := range []struct {
		on   bool
		text string
	}{{s.Quiet, "quiet"}, {s.Restarting, "rolling restart"}, {s.Stopping, "stopping"}} {
		if more.on {
			text += ", " + more.text
		}
	}
	return text
}

// tell tells how a pool is that runs without a swarm, until the returned func is called.
func (n *notifier) tell(pool *worker.Pool) (stop func()) {
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			s := pool.Stats()
			if s.Connected == s.Threads {
				n.isReady()
			}
			n.isWell(fmt.Sprintf("%d of %d consumers connected, %d busy, %d jobs started", s.Connected, s.Threads, s.Busy, s.Started))
			select {
			case <-tick.C:
			case <-over:
				return
			}
		}
	}()
	return func() {
		close(over)
		<-done
	}
}

func (n *notifier) send(lines ...string) {
	if n.socket == "" {
		return
	}
	// The name of an abstract socket begins with @ in the variable, and in package net.
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err == nil {
		_, err = conn.Write([]byte(strings.Join(lines, "\n")))
		_ = conn.Close() // nothing is buffered
	}
	if err != nil && !n.troubled {
		n.logger.Error("systemd could not be told how the service is", "socket", n.socket, "message", strings.Join(lines, " "), "error", err)
	}
	n.troubled = err != nil
}
