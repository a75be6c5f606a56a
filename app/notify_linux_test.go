package app

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/postburner/postburner/broker/brokertest"
)

// systemd is a fake of the notify socket.
type systemd struct {
	mu       sync.Mutex // guards what follows
	messages []string
}

func listenNotify(t *testing.T, name string) *systemd {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // ends the reader
	s := &systemd{}
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			s.mu.Lock()
			s.messages = append(s.messages, string(buf[:n]))
			s.mu.Unlock()
		}
	}()
	return s
}

// has waits until so many messages have the text.
func (s *systemd) has(t *testing.T, times int, text string) {
	t.Helper()
	eventually(t.Fatalf, func() (bool, string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		n := 0
		for _, m := range s.messages {
			if strings.Contains(m, text) {
				n++
			}
		}
		return n >= times, fmt.Sprintf("%d messages have %q, want %d; all: %q", n, text, times, s.messages)
	})
}

func TestSystemdIsToldHowTheServiceIs(t *testing.T) {
	t.Parallel()
	for socket, name := range map[string]string{"a path": filepath.Join(t.TempDir(), "notify"), "abstract": "@postburner-test-" + filepath.Base(t.TempDir())} {
		for _, forks := range []int{2, 0} {
			t.Run(fmt.Sprint(socket, ", forks ", forks), func(t *testing.T) {
				t.Parallel()
				name := fmt.Sprint(name, forks)
				service := listenNotify(t, name)
				server := brokertest.Start(t)
				handler := "  handlers: {Tell: {exec: [sh, -c, 'echo \"socket [$NOTIFY_SOCKET] watchdog [$WATCHDOG_USEC]\"']}}\n"
				p := start(t, workerOn(server, fmt.Sprintf("forks: %d, threads: 1", forks), handler),
					"env", "NOTIFY_SOCKET="+name, "WATCHDOG_USEC=1500000", "goworker", "work")
				service.has(t, 1, "READY=1")
				service.has(t, 2, "WATCHDOG=1")
				service.has(t, 1, "STATUS=")
				put(t, server, "Tell")
				p.says(1, "socket [] watchdog []")
				service.has(t, 1, "1 jobs started")
				if forks > 0 {
					p.signal(syscall.SIGUSR1)
					service.has(t, 1, "RELOADING=1\nMONOTONIC_USEC=")
					service.has(t, 2, "READY=1")
					p.says(1, "rolling restart is done")
					p.configure("development: nonsense")
					p.signal(syscall.SIGUSR1) // a reload that fails is over too
					service.has(t, 2, "RELOADING=1")
					service.has(t, 3, "READY=1")
				}
				p.signal(syscall.SIGTERM)
				service.has(t, 1, "STOPPING=1")
				p.ends(ExitOK)
			})
		}
	}
}

func TestAServiceWhoseSocketIsGoneWorksOnAndSaysSoOnce(t *testing.T) {
	t.Parallel()
	server := brokertest.Start(t)
	p := start(t, workerOn(server, "forks: 1, threads: 1"), "env", "NOTIFY_SOCKET="+filepath.Join(t.TempDir(), "gone"), "goworker", "work")
	p.says(1, "systemd could not be told")
	put(t, server, "Greet")
	p.says(1, "hello from Go")
	p.signal(syscall.SIGTERM)
	p.ends(ExitOK)
	if n := strings.Count(p.text(), "systemd could not be told"); n != 1 {
		t.Errorf("it says so %d times", n)
	}
}
