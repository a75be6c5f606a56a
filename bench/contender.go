package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	gobeanstalk "github.com/beanstalkd/go-beanstalk"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/job"
	"github.com/postburner/postburner/worker"
)

const workTube = "postburner.production.default"

// body is a job of 200 bytes as the Go client writes it, for the handler that does nothing.
var body = func() string {
	const envelope = `{"job_class":"noop","job_id":"01990000-0000-7000-8000-000000000001","queue_name":"default","arguments":[{"n":1,"pad":"%s"}],"retry_count":0,"executions":0,"enqueued_at":"2026-12-01T00:00:00Z"}`
	return fmt.Sprintf(envelope, strings.Repeat("x", 200-len(envelope)+len("%s")))
}()

// noop is the handler of every measurement.
type noop struct {
	N int `json:"n"`
}

func (noop) Kind() string { return "noop" }

func registry() *job.Registry {
	r := job.NewRegistry()
	job.Handle(r, func(context.Context, noop) error { return nil })
	return r
}

// contend plays one contender until its standard input ends: `contend bare|raw|pool ADDR CONNECTIONS`.
func contend(args []string) error {
	loops := map[string]func(ctx context.Context, addr string, connections int) error{
		"bare": each(bare), "raw": each(raw), "pool": pool,
	}
	if len(args) != 3 || loops[args[0]] == nil {
		return fmt.Errorf("contend %v: want bare|raw|pool ADDR CONNECTIONS", args)
	}
	connections, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return loops[args[0]](ctx, args[1], connections)
}

// each runs one loop per connection; they end with the process.
func each(loop func(conn net.Conn) error) func(context.Context, string, int) error {
	return func(ctx context.Context, addr string, connections int) error {
		var running sync.WaitGroup
		failed := make(chan error, connections)
		for range connections {
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				return err
			}
			context.AfterFunc(ctx, func() { _ = conn.Close() })
			running.Go(func() { failed <- loop(conn) })
		}
		running.Wait()
		if err := <-failed; !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	}
}

// bare is the loop that a user of go-beanstalk writes: reserve, delete.
func bare(conn net.Conn) error {
	c := gobeanstalk.NewConn(conn)
	tubes := gobeanstalk.NewTubeSet(c, workTube)
	for {
		id, _, err := tubes.Reserve(3 * time.Second)
		if errors.Is(err, gobeanstalk.ErrTimeout) {
			continue
		}
		if err != nil {
			return unwrapClosed(err)
		}
		if err := c.Delete(id); err != nil {
			return unwrapClosed(err)
		}
	}
}

// unwrapClosed finds the closed connection in go-beanstalk's error, which does not unwrap.
func unwrapClosed(err error) error {
	if failure, ok := errors.AsType[gobeanstalk.ConnError](err); ok {
		return failure.Err
	}
	return err
}

// raw is the fastest loop that one can write by hand: delete and the next reserve in one write, no parsing beyond need.
func raw(conn net.Conn) error {
	r := bufio.NewReader(conn)
	if _, err := fmt.Fprintf(conn, "watch %s\r\nignore default\r\n", workTube); err != nil {
		return err
	}
	for range 2 {
		if _, err := r.ReadSlice('\n'); err != nil {
			return err
		}
	}
	reserve := []byte("reserve-with-timeout 3\r\n")
	out := append([]byte(nil), reserve...)
	job := make([]byte, 0, 1024)
	for {
		if _, err := conn.Write(out); err != nil {
			return err
		}
		if bytes.HasPrefix(out, []byte("delete ")) {
			if _, err := r.ReadSlice('\n'); err != nil {
				return err
			}
		}
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		rest, ok := bytes.CutPrefix(line, []byte("RESERVED "))
		if !ok {
			out = append(out[:0], reserve...)
			continue
		}
		id, rest, _ := bytes.Cut(rest, []byte(" "))
		size, err := strconv.Atoi(string(bytes.TrimRight(rest, "\r\n")))
		if err != nil {
			return err
		}
		out = append(append(append(append(out[:0], "delete "...), id...), "\r\n"...), reserve...)
		job = job[:size+2]
		if _, err := io.ReadFull(r, job); err != nil {
			return err
		}
	}
}

// pool is Postburner's own consumers in one process.
func pool(ctx context.Context, addr string, connections int) error {
	p, err := worker.New(worker.Options{
		Beanstalk: beanstalk.Options{URL: "beanstalk://" + addr},
		Tubes:     []string{workTube},
		Registry:  registry(),
		Threads:   connections,
		Logger:    slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	return p.Run(ctx)
}
