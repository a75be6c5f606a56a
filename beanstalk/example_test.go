package beanstalk_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/broker"
)

func Example() {
	ctx := context.Background()
	b := broker.New(broker.Options{}) // or beanstalkd: URL: "beanstalk://localhost:11300"
	defer b.Close()
	conn, err := beanstalk.New(beanstalk.Options{
		Tubes: []string{"mail"},
		Dial: func(context.Context) (net.Conn, error) {
			here, there := net.Pipe()
			go b.ServeConn(ctx, there)
			return here, nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()

	if _, err := conn.Put(ctx, beanstalk.Put{Tube: "mail", Body: []byte("hello"), TTR: time.Minute}); err != nil {
		fmt.Println(err)
		return
	}
	job, err := conn.Reserve(ctx, time.Second)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("job %d: %s\n", job.ID, job.Body)
	_, deleted, err := conn.DeleteAndReserve(ctx, job, 0) // one round trip
	fmt.Println(deleted, errors.Is(err, beanstalk.ErrTimeout))
	// Output:
	// job 1: hello
	// <nil> true
}
