package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/job"
)

// What callers branch on, with errors.Is; the same values as in package beanstalk.
var (
	// ErrUnknownOutcome: the job was sent and no answer came. It may have been
	// enqueued or not; its Receipt has the JobID by which handlers can tell.
	ErrUnknownOutcome = beanstalk.ErrUnknownOutcome
	// ErrNotSent: the job was certainly not enqueued.
	ErrNotSent = beanstalk.ErrNotSent
	// ErrDraining: the server is about to be shut down and takes no jobs.
	ErrDraining = beanstalk.ErrDraining
	// ErrOutOfMemory: the server has no memory, or no disk for its binlog.
	ErrOutOfMemory = beanstalk.ErrOutOfMemory
	// ErrBuried: the server had no memory to queue the job and buried it. It is there, with its
	// id in the Receipt, and waits to be kicked.
	ErrBuried = beanstalk.ErrBuried
	// ErrClosed: Close was called.
	ErrClosed = beanstalk.ErrClosed
)

// Receipt says where a job is.
type Receipt struct {
	JobID       string `json:"job_id"`        // its identity over all its attempts
	BeanstalkID uint64 `json:"beanstalkd_id"` // beanstalkd's own
	Tube        string `json:"tube"`
}

// Client enqueues jobs. It is safe for concurrent use: calls at the same time get
// connections of their own, up to Options.Connections.
type Client struct {
	opts  Options
	slots chan struct{} // one token a connection in use

	mu     sync.Mutex // guards what follows
	idle   []*connection
	all    []*connection
	closed bool
}

// connection is one connection, with the server's max-job-size once it has been asked.
type connection struct {
	conn       *beanstalk.Conn
	maxJobSize int
	usedAt     time.Time
}

// New checks the options and returns a Client that has not connected yet. Its error names every option that is wrong.
func New(opts Options) (*Client, error) {
	err := opts.complete()
	c := &Client{opts: opts}
	if opts.Dial == nil {
		if urlErr := beanstalk.CheckURL(c.opts.URL); urlErr != nil {
			err = errors.Join(err, fmt.Errorf("client: %w", urlErr))
		}
	}
	if err != nil {
		return nil, err
	}
	c.slots = make(chan struct{}, c.opts.Connections)
	return c, nil
}

// Close closes the connections; later calls answer ErrClosed. It always returns nil.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, connection := range c.all {
		_ = connection.conn.Close() // always nil
	}
	return nil
}

// Enqueue puts one job and returns where it is. With an error that is
// ErrUnknownOutcome the receipt has the JobID and no BeanstalkID, with ErrBuried it is whole. Other errors mean
// that the job was not enqueued; among them are *InvalidQueueError, *ArgumentsError,
// *TooLargeError, ErrDraining and ErrOutOfMemory.
func (c *Client) Enqueue(ctx context.Context, args job.Args, options ...Option) (Receipt, error) {
	it, err := c.prepare(args, options, time.Now())
	if err != nil {
		return Receipt{}, err
	}
	results := []Result{{Receipt: it.receipt}}
	c.send(ctx, []item{it}, []int{0}, results)
	if err := results[0].Err; err != nil && !errors.Is(err, ErrUnknownOutcome) && !errors.Is(err, ErrBuried) {
		return Receipt{}, err
	}
	return results[0].Receipt, results[0].Err
}

// send puts the items over one connection and notes what became of each at its index in results.
func (c *Client) send(ctx context.Context, items []item, at []int, results []Result) {
	ctx = context.WithValue(ctx, triesKey{}, new(int))
	connection, err := c.take(ctx)
	if err != nil {
		for _, i := range at {
			results[i].Err = err
		}
		return
	}
	defer c.give(connection)
	var puts []beanstalk.Put
	var sent []int
	for k, it := range items {
		if limit := connection.maxJobSize - 2; len(it.put.Body) > limit {
			results[at[k]].Err = &TooLargeError{len(it.put.Body), limit}
			continue
		}
		puts = append(puts, it.put)
		sent = append(sent, at[k])
	}
	for k, result := range connection.conn.PutMany(ctx, puts) {
		results[sent[k]].BeanstalkID = result.ID
		if result.Err != nil {
			results[sent[k]].Err = fmt.Errorf("client: %w", result.Err)
		}
	}
}

// idleLimit is how long a connection may have been idle before it is asked whether it
// still lives: a job put on one that the network has dropped would have an unknown outcome.
const idleLimit = 5 * time.Second

// take waits for a connection that is free, and sees to it that it lives.
func (c *Client) take(ctx context.Context) (*connection, error) {
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("client: wait for a connection: %w: %w", ErrNotSent, context.Cause(ctx))
	}
	free, err := c.free()
	if err != nil {
		<-c.slots
		return nil, err
	}
	if free.maxJobSize > 0 && free.conn.Connected() && time.Since(free.usedAt) < idleLimit {
		return free, nil
	}
	stats, err := free.conn.Stats(ctx)
	if errors.Is(err, ErrUnknownOutcome) && ctx.Err() == nil { // it had died while it was idle
		stats, err = free.conn.Stats(ctx)
	}
	if err != nil {
		c.give(free)
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("client: %w: connect: %w", ErrNotSent, withoutOutcome(err))
	}
	free.maxJobSize = stats.MaxJobSize
	return free, nil
}

// withoutOutcome hides that the outcome of a question is unknown, which says nothing about a job.
func withoutOutcome(err error) error {
	if failure, ok := errors.AsType[*beanstalk.Error](err); ok && errors.Is(err, ErrUnknownOutcome) {
		cause := strings.TrimPrefix(failure.Err.Error(), ErrUnknownOutcome.Error()+": ")
		return fmt.Errorf("%s at %s: the connection was lost (is that beanstalkd?): %s", failure.Op, failure.Addr, cause)
	}
	return err
}

// free returns a connection that nobody uses, a new one if need be.
func (c *Client) free() (*connection, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, fmt.Errorf("client: %w", ErrClosed)
	}
	if n := len(c.idle); n > 0 {
		free := c.idle[n-1]
		c.idle = c.idle[:n-1]
		return free, nil
	}
	conn, err := beanstalk.New(beanstalk.Options{
		URL: c.opts.URL, TLS: c.opts.TLS, Dial: c.opts.Dial, DialTimeout: c.opts.Timeout, ReplyTimeout: c.opts.Timeout,
		Redial: redial,
	})
	if err != nil {
		return nil, err
	}
	fresh := &connection{conn: conn}
	c.all = append(c.all, fresh)
	return fresh, nil
}

// triesKey is where a call counts its dials.
type triesKey struct{}

// redial lets each call dial twice at most, the second time at once: whoever waits for a
// request is told that the server is not there, instead of waiting with it.
func redial(ctx context.Context, _ int, err error) error {
	tries, _ := ctx.Value(triesKey{}).(*int)
	if tries == nil || *tries > 0 {
		return err
	}
	*tries++
	return nil
}

func (c *Client) give(connection *connection) {
	connection.usedAt = time.Now()
	c.mu.Lock()
	c.idle = append(c.idle, connection)
	c.mu.Unlock()
	<-c.slots
}
