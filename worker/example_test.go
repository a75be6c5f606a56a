package worker_test

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/broker"
	"github.com/postburner/postburner/job"
	"github.com/postburner/postburner/worker"
)

// A pool inside a program of one's own; app.Main does this and much more.
func Example() {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // the embedded broker stands for beanstalkd
	if err != nil {
		fmt.Println(err)
		return
	}
	b := broker.New(broker.Options{})
	served := make(chan error)
	go func() { served <- b.Serve(context.Background(), listener) }()
	server := beanstalk.Options{URL: "beanstalk://" + listener.Addr().String()}

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	registry := job.NewRegistry()
	registry.Handle("Greet", job.HandlerFunc(func(_ context.Context, j *job.Job) error {
		var names []string
		if err := j.Bind(&names); err != nil {
			return err
		}
		fmt.Println("hello", names)
		stop()
		return nil
	}))
	pool, err := worker.New(worker.Options{Beanstalk: server, Tubes: []string{"greetings"}, Registry: registry, Threads: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	conn, err := beanstalk.New(server)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	body := []byte(`{"job_class":"Greet","job_id":"1","arguments":["Ann","Bob"]}`)
	if _, err := conn.Put(ctx, beanstalk.Put{Tube: "greetings", Body: body, TTR: time.Minute}); err != nil {
		fmt.Println(err)
	}
	fmt.Println(pool.Run(ctx), pool.Stats().Done)
	b.Close()
	fmt.Println(<-served)
	// Output:
	// hello [Ann Bob]
	// <nil> 1
	// <nil>
}
