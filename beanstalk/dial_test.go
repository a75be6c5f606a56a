package beanstalk_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/postburner/postburner/beanstalk"
	"github.com/postburner/postburner/broker"
)

func TestDialOverAUnixSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "b.sock")
	listener, err := net.Listen("unix", path)
	want(t, "listen", err, nil)
	serve(t, listener)
	conn := start(t, beanstalk.Options{URL: "unix://" + path, Tubes: []string{"mail"}})
	put(t, conn, "mail", "x")
	reserve(t, conn)
}

func TestDialOverTLS(t *testing.T) {
	t.Parallel()
	certified := httptest.NewTLSServer(nil) // for its certificate, of example.com and 127.0.0.1
	defer certified.Close()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certified.TLS.Certificates, MinVersion: tls.VersionTLS12})
	want(t, "listen", err, nil)
	serve(t, listener)
	roots := x509.NewCertPool()
	roots.AddCert(certified.Certificate())
	url := "beanstalks://" + listener.Addr().String()

	conn := start(t, beanstalk.Options{URL: url, Tubes: []string{"mail"}, TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}})
	put(t, conn, "mail", "x")
	reserve(t, conn)

	giveUp := func(_ context.Context, _ int, err error) error { return err }
	strange := start(t, beanstalk.Options{URL: url, Redial: giveUp})
	_, err = strange.Stats(t.Context())
	want(t, "with a certificate that nobody knows", err, beanstalk.ErrNotSent)
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); !ok {
		t.Errorf("got %v, want it to be about the certificate", err)
	}
	other := start(t, beanstalk.Options{URL: url, Redial: giveUp, TLS: &tls.Config{RootCAs: roots, ServerName: "elsewhere.test", MinVersion: tls.VersionTLS12}})
	_, err = other.Stats(t.Context())
	if _, ok := errors.AsType[x509.HostnameError](err); !ok {
		t.Errorf("got %v, want it to be about the name", err)
	}
}

// serve has an embedded broker serve the listener.
func serve(t *testing.T, listener net.Listener) {
	t.Helper()
	b := broker.New(broker.Options{})
	served := make(chan error, 1)
	go func() { served <- b.Serve(context.Background(), listener) }()
	t.Cleanup(func() {
		b.Close()
		want(t, "serve", <-served, nil)
	})
}
