package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/postburner/postburner/broker"
	"github.com/postburner/postburner/config"
)

// embeddedAddr is where the embedded broker listens: beanstalkd's own port, on this machine alone.
const embeddedAddr = "127.0.0.1:11300"

// wsaEADDRINUSE is EADDRINUSE on Windows, whose errors package syscall does not map to its own.
const wsaEADDRINUSE = syscall.Errno(10048)

func (p *program) brokerCommand() *cobra.Command {
	var listen string
	var maxJobSize int
	cmd := &cobra.Command{
		Use:   "broker",
		Short: "Run the embedded broker alone",
		Long: `Run the embedded broker alone: beanstalkd's protocol, in memory. Its jobs end with
the process, so it is for development and tests; production uses beanstalkd. It prints
the address on which it listens, and runs until TERM or INT.`,
		Example: "  postburner broker --listen 127.0.0.1:11300",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.runBroker(cmd.Context(), listen, maxJobSize)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", embeddedAddr, "`address` to listen on, host:port; port 0 takes a free one")
	cmd.Flags().IntVar(&maxJobSize, "max-job-size", broker.DefaultMaxJobSize, "largest body of a job, in `bytes`")
	return cmd
}

func (p *program) runBroker(ctx context.Context, addr string, maxJobSize int) error {
	if maxJobSize < 1 {
		return usage(fmt.Errorf("--max-job-size is %d, want 1 or more", maxJobSize))
	}
	signals := trap()
	listener, err := listen(ctx, addr, "name another --listen")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	signals.handle(newLogger(p.Stderr, config.Log{Level: "info", Format: "text"}), func(s signalKind) {
		if s == signalStop {
			cancel()
		}
	})
	defer signals.stop()
	if err := p.print("listening on %s; jobs live in memory\n", listener.Addr()); err != nil {
		return errors.Join(err, listener.Close())
	}
	return broker.New(broker.Options{MaxJobSize: maxJobSize}).Serve(ctx, listener)
}

// listen starts to listen for the embedded broker; advice is for when the address is taken.
func listen(ctx context.Context, addr, advice string) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err == nil {
		return listener, nil
	}
	if errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, wsaEADDRINUSE) {
		return nil, fmt.Errorf("start the embedded broker on %s: the address is in use: %s", addr, advice)
	}
	return nil, fmt.Errorf("start the embedded broker: %w", err)
}

// startEmbedded starts the embedded broker, if the configuration asks for it; stop ends it.
func (p *program) startEmbedded(ctx context.Context, c *config.Config, logger *slog.Logger) (stop func(), err error) {
	if c.BeanstalkURL != config.Embedded {
		return func() {}, nil
	}
	listener, err := listen(ctx, p.embeddedAddr, "use the server there, with beanstalk_url: beanstalk://"+p.embeddedAddr+", or stop it")
	if err != nil {
		return nil, err
	}
	logger.Warn("the embedded broker is in use: jobs live in memory and end with this process; production needs beanstalkd", "listen", listener.Addr().String())
	return serve(broker.New(broker.Options{}), listener, logger), nil
}

// serve has a broker serve in the background.
func serve(b *broker.Broker, listener net.Listener, logger *slog.Logger) (stop func()) {
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := b.Serve(context.Background(), listener); err != nil {
			logger.Error("the embedded broker ended", "error", err)
		}
	}()
	return func() {
		_ = b.Close() // always nil
		<-served
	}
}
