package app

import (
	"bytes"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
)

// signalKind is what a signal asks for.
type signalKind int

const (
	signalStop signalKind = iota
	signalQuiet
	signalRestart
	signalDump
	signalReopen
	signalIgnored
)

// signals are those of this process, trapped before anything is started, so that none
// is lost and none that merely asks for something kills.
type signals struct {
	arrived  chan os.Signal
	over     chan struct{}
	once     sync.Once
	handling sync.WaitGroup
}

// trap traps the signals for as long as the process lives: one that comes when the work
// is done must not turn a clean end into a death.
func trap() *signals {
	s := &signals{arrived: make(chan os.Signal, 16), over: make(chan struct{})}
	signal.Notify(s.arrived, trapped()...)
	return s
}

// handle starts to call f, one call at a time, for each signal that asks for something. TTIN is
// answered here; f is told of it afterwards.
func (s *signals) handle(logger *slog.Logger, f func(signalKind)) {
	s.handling.Go(func() {
		for {
			select {
			case <-s.over:
				return
			case sig := <-s.arrived:
				kind := kindOf(sig)
				if kind == signalIgnored {
					logger.Debug("signal ignored", "signal", sig.String())
					continue
				}
				if kind == signalDump {
					dump(logger)
				}
				f(kind)
			}
		}
	})
}

// stop ends handle and waits for the call of f that runs.
func (s *signals) stop() {
	s.once.Do(func() { close(s.over) })
	s.handling.Wait()
}

// dump logs the stack of every goroutine.
func dump(logger *slog.Logger) {
	buf := make([]byte, 1<<20)
	n := runtime.Stack(buf, true)
	for len(buf) == n && n < 64<<20 {
		buf = make([]byte, 2*n)
		n = runtime.Stack(buf, true)
	}
	stacks := bytes.Split(bytes.TrimSpace(buf[:n]), []byte("\n\n"))
	logger.Warn("goroutines", "count", len(stacks))
	for _, stack := range stacks {
		logger.Warn("goroutine", "stack", strings.TrimSpace(string(stack)))
	}
}
