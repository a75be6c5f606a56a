package job_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postburner/postburner/job"
)

type Charge struct {
	Invoice int `json:"invoice"`
}

func (Charge) Kind() string { return "Charge" }

var errGateway = errors.New("the gateway is busy")

// charge is a handler: what it returns decides what becomes of the job.
func charge(ctx context.Context, a Charge) error {
	switch {
	case a.Invoice == 0:
		return job.Bury(errors.New("there is no invoice 0")) // somebody has to look at it
	case a.Invoice < 10:
		return job.Discard(errors.New("too old")) // nobody has to
	case a.Invoice > 1000:
		return job.RetryIn(time.Minute, errGateway)
	}
	fmt.Println("charged", a.Invoice, "as job", job.FromContext(ctx).ID)
	return nil
}

// A handler is tested without a worker: by a registry and a context that carries a job.
func Example() {
	registry := job.NewRegistry()
	job.Handle(registry, charge)

	handler, _ := registry.Lookup("Charge")
	for _, arguments := range []string{`[{"invoice":77}]`, `[{"invoice":0}]`, `[{"invoice":2000}]`} {
		j := &job.Job{Envelope: &job.Envelope{Kind: "Charge", ID: "0199", Arguments: []byte(arguments)}}
		err := handler.HandleJob(job.NewContext(context.Background(), j), j)
		fmt.Println(job.VerdictOf(err).Action, err)
	}
	// Output:
	// charged 77 as job 0199
	// done <nil>
	// bury bury: there is no invoice 0
	// retry retry in 1m0s: the gateway is busy
}
