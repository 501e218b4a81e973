package flags

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"
)

// Trust are the flags that say how a command talks to a daemon over TLS.
type Trust struct {
	CA   string `name:"ca" help:"Authorities of the daemon's certificate, PEM; else the machine's." env:"HELIX_CA" type:"path"`
	Cert string `name:"cert" help:"Client certificate for the daemon, PEM." env:"HELIX_CERT" type:"path"`
	Key  string `name:"cert-key" help:"Private key of the client certificate, PEM." env:"HELIX_CERT_KEY" type:"path"`
}

// clientIdle is how long a client keeps a connection that it does not use.
const clientIdle = 5 * time.Second

// Client returns an HTTP client that connects as the flags say.
func (f Trust) Client() (*http.Client, error) {
	if f == (Trust{}) {
		return http.DefaultClient, nil
	}
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	var err error
	if f.CA != "" {
		if t.RootCAs, err = Authorities(f.CA); err != nil {
			return nil, fmt.Errorf("--ca: %w", err)
		}
	}
	if (f.Cert == "") != (f.Key == "") {
		return nil, errors.New("--cert and --cert-key need each other")
	}
	if f.Cert != "" {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, fmt.Errorf("--cert, --cert-key: %w", err)
		}
		t.Certificates = []tls.Certificate{pair}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = t
	transport.IdleConnTimeout = clientIdle
	return &http.Client{Transport: transport}, nil
}

// Authorities reads a file of certificates in PEM.
func Authorities(name string) (*x509.CertPool, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: has no certificate in PEM", name)
	}
	return pool, nil
}
