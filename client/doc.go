// Package client enqueues jobs from a Go service.
//
//	c, err := client.New(client.Options{URL: "beanstalk://127.0.0.1:11300", Environment: "production"})
//	…
//	receipt, err := c.Enqueue(ctx, SendEmail{UserID: 7}, client.Queue("mailers"), client.Delay(time.Minute))
//
// A receipt means that beanstalkd has the job. An error means that it has not, with
// one exception that only the caller can judge: [ErrUnknownOutcome] says that the job
// was sent and no answer came. The client never sends a job twice by itself.
package client
