package beanstalk

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// defaultPort is beanstalkd's own.
const defaultPort = "11300"

// endpoint is where a server listens.
type endpoint struct {
	network string // tcp or unix
	address string
	tls     *tls.Config // nil: plain
}

// CheckURL reports why text names no server: want beanstalk://HOST[:PORT],
// beanstalks://HOST[:PORT] for TLS, or unix:///PATH. The port defaults to 11300.
func CheckURL(text string) error {
	_, err := parseURL(text, nil)
	return err
}

// MaskURL returns the URL with a password replaced, fit to be printed.
func MaskURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "(a URL that cannot be parsed)"
	}
	return u.Redacted()
}

func parseURL(text string, config *tls.Config) (endpoint, error) {
	u, err := url.Parse(text)
	if err != nil {
		// url.Error repeats the text, with whatever secret is in it.
		if inner, ok := errors.AsType[*url.Error](err); ok {
			err = inner.Err
		}
		return endpoint{}, fmt.Errorf("server URL: %w", err)
	}
	switch u.Scheme {
	case "unix":
		path := u.Host + u.Path
		if path == "" {
			return endpoint{}, errors.New("server URL unix:// has no path: want unix:///run/beanstalkd.sock")
		}
		return endpoint{network: "unix", address: path}, nil
	case "beanstalk", "beanstalks":
	default:
		return endpoint{}, fmt.Errorf("server URL %q: want beanstalk://HOST:PORT, beanstalks://HOST:PORT or unix:///PATH", MaskURL(text))
	}
	if u.Hostname() == "" {
		return endpoint{}, fmt.Errorf("server URL %q has no host", MaskURL(text))
	}
	if strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return endpoint{}, fmt.Errorf("server URL %q: nothing may follow the port", MaskURL(text))
	}
	port := u.Port()
	if port == "" {
		port = defaultPort
	}
	e := endpoint{network: "tcp", address: net.JoinHostPort(u.Hostname(), port)}
	if u.Scheme == "beanstalks" {
		e.tls = &tls.Config{MinVersion: tls.VersionTLS12}
		if config != nil {
			e.tls = config.Clone()
		}
		if e.tls.ServerName == "" {
			e.tls.ServerName = u.Hostname()
		}
	}
	return e, nil
}
