package client_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/postburner/postburner/broker"
	"github.com/postburner/postburner/broker/brokertest"
	"github.com/postburner/postburner/client"
)

type Welcome struct {
	UserID int `json:"user_id"`
}

func (Welcome) Kind() string { return "Welcome" }

// signUp is what a service does, with the client that its main has made.
func signUp(ctx context.Context, jobs *client.Client, userID int) error {
	receipt, err := jobs.Enqueue(ctx, Welcome{UserID: userID}, client.Queue("mailers"), client.Delay(time.Minute))
	if err != nil {
		return fmt.Errorf("welcome user %d: %w", userID, err)
	}
	fmt.Println("enqueued in", receipt.Tube)
	return nil
}

func Example() {
	// The embedded broker stands for beanstalkd.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	b := broker.New(broker.Options{})
	served := make(chan error)
	go func() { served <- b.Serve(context.Background(), listener) }()
	defer func() {
		b.Close()
		if err := <-served; err != nil {
			fmt.Println(err)
		}
	}()

	jobs, err := client.New(client.Options{URL: "beanstalk://" + listener.Addr().String(), Environment: "production"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer jobs.Close()
	if err := signUp(context.Background(), jobs, 7); err != nil {
		fmt.Println(err)
	}
	// Output: enqueued in postburner.production.mailers
}

// A test of a service has a broker of its own, and looks into it.
func TestSigningUpEnqueuesAWelcome(t *testing.T) {
	server := brokertest.Start(t)
	jobs, err := client.New(client.Options{URL: server.URL(), Environment: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer jobs.Close()
	if err := signUp(t.Context(), jobs, 7); err != nil {
		t.Fatal(err)
	}
	if got := server.Jobs("postburner.test.mailers"); len(got) != 1 || got[0].State != "delayed" {
		t.Errorf("jobs in mailers: %+v, want one, delayed", got)
	}
}
