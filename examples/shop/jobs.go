// Package shop is what the shop's service and its worker share: the jobs, and how they
// are done.
package shop

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/postburner/postburner/job"
)

// SendReceipt mails a customer the receipt of an order.
type SendReceipt struct {
	Order int    `json:"order"`
	Email string `json:"email"`
}

// Kind names the job on the wire.
func (SendReceipt) Kind() string { return "SendReceipt" }

// ResizePhoto makes a thumbnail of a product's photo.
type ResizePhoto struct {
	Photo string `json:"photo"`
	Width int    `json:"width"`
}

// Kind names the job on the wire.
func (ResizePhoto) Kind() string { return "ResizePhoto" }

// Handlers returns what the worker can do.
func Handlers() *job.Registry {
	registry := job.NewRegistry()
	job.Handle(registry, sendReceipt)
	job.Handle(registry, resizePhoto)
	return registry
}

func sendReceipt(ctx context.Context, a SendReceipt) error {
	if !strings.Contains(a.Email, "@") {
		// No retry will help; someone has to look at it.
		return job.Bury(fmt.Errorf("order %d has no email address", a.Order))
	}
	job.FromContext(ctx).Log().Info("receipt sent", "order", a.Order, "to", a.Email)
	return nil
}

var errBusy = errors.New("the image server is busy")

func resizePhoto(ctx context.Context, a ResizePhoto) error {
	attempt, err := job.FromContext(ctx).Attempt(ctx)
	if err != nil {
		return err
	}
	if attempt == 1 {
		return errBusy // tried again in about a second
	}
	job.FromContext(ctx).Log().Info("photo resized", "photo", a.Photo, "width", a.Width, "attempt", attempt)
	return nil
}
