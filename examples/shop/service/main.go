// Command service is the shop's web service: POST /orders takes an order and leaves what
// can wait to the worker.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/postburner/postburner/client"
	"github.com/postburner/postburner/examples/shop"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address to serve on")
	beanstalk := flag.String("beanstalk", client.DefaultURL, "URL of beanstalkd")
	flag.Parse()
	jobs, err := client.New(client.Options{URL: *beanstalk}) // the environment is POSTBURNER_ENV, else development
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", *listen) //nolint:noctx // for as long as the program runs
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("shop on http://%s\n", listener.Addr()) //nolint:forbidigo // the service's only output
	server := &http.Server{Handler: routes(jobs), ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.Serve(listener))
}

// order is the body of POST /orders.
type order struct {
	Number int    `json:"number"`
	Email  string `json:"email"`
	Photo  string `json:"photo"`
}

func routes(jobs *client.Client) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		var o order
		if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		receipt, err := jobs.Enqueue(r.Context(), shop.SendReceipt{Order: o.Number, Email: o.Email})
		if err == nil && o.Photo != "" {
			_, err = jobs.Enqueue(r.Context(), shop.ResizePhoto{Photo: o.Photo, Width: 200}, client.Queue("photos"), client.MaxRetries(3))
		}
		switch {
		case errors.Is(err, client.ErrUnknownOutcome):
			// It may have been enqueued: whoever sends the order again may send two receipts.
			http.Error(w, err.Error(), http.StatusGatewayTimeout)
		case err != nil:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		default:
			w.WriteHeader(http.StatusAccepted)
			if err := json.NewEncoder(w).Encode(receipt); err != nil {
				log.Print(err)
			}
		}
	})
	return mux
}
