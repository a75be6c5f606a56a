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
	signalIgnored
)

// signals are those of this process, trapped before anything is started, so that none
// is lost and none that merely asks for something kills.
type signals struct {
	arrived chan os.Signal
	ended   chan struct{}
	once    sync.Once
}

func trap() *signals {
	s := &signals{arrived: make(chan os.Signal, 16), ended: make(chan struct{})}
	signal.Notify(s.arrived, trapped()...)
	return s
}

// stop ends handle, and gives the signals their default meaning again.
func (s *signals) stop() {
	s.once.Do(func() {
		signal.Stop(s.arrived)
		close(s.ended)
	})
}

// handle calls f for each signal that asks for something, until stop.
func (s *signals) handle(logger *slog.Logger, f func(signalKind)) {
	for {
		select {
		case <-s.ended:
			return
		case sig := <-s.arrived:
			switch kind := kindOf(sig); kind {
			case signalIgnored:
				logger.Debug("signal ignored", "signal", sig.String())
			case signalDump:
				dump(logger)
			default:
				f(kind)
			}
		}
	}
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
