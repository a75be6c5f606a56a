package app

import (
	"context"
	"fmt"
	"net"

	"github.com/spf13/cobra"

	"github.com/postburner/postburner/broker"
	"github.com/postburner/postburner/config"
)

func (p *program) brokerCommand() *cobra.Command {
	var listen string
	var maxJobSize int
	cmd := &cobra.Command{
		Use:   "broker",
		Short: "Run the embedded broker alone",
		Long: `Run the embedded broker alone: beanstalkd's protocol, in memory. Its jobs end with
the process, so it is for development and tests; production uses beanstalkd.`,
		Example: "  postburner broker --listen 127.0.0.1:11300",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.runBroker(cmd.Context(), listen, maxJobSize)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", embeddedAddr, "`address` to listen on, host:port; port 0 takes a free one")
	cmd.Flags().IntVar(&maxJobSize, "max-job-size", broker.DefaultMaxJobSize, "largest body of a job, in `bytes`")
	return cmd
}

func (p *program) runBroker(ctx context.Context, listen string, maxJobSize int) error {
	signals := trap()
	defer signals.stop()
	if maxJobSize < 1 {
		return fmt.Errorf("--max-job-size is %d, want 1 or more", maxJobSize)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return failed(fmt.Errorf("start the broker: %w; is another server on that address?", err))
	}
	logger := newLogger(p.Stderr, config.Log{Level: "info", Format: "text"})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go signals.handle(logger, func(s signalKind) {
		if s == signalStop {
			cancel()
		}
	})
	if err := p.print("listening on %s; jobs live in memory\n", listener.Addr()); err != nil {
		return err
	}
	return failed(broker.New(broker.Options{MaxJobSize: maxJobSize}).Serve(ctx, listener))
}
