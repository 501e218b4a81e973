package settings

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"time"

	"github.com/helixd/helixd/cmd/helixd/config"
)

// Certificates that end sooner are reported. An ACME client has renewed one with 30 days left.
const (
	CertificateWarning = 21 * 24 * time.Hour
	CertificateProblem = 3 * 24 * time.Hour
)

// Certificate is a file of certificates that the configuration names.
type Certificate struct {
	Key  string // of the configuration, such as "tls.cert"
	File string
	// Ends is when the first certificate of a chain ends, or the last one of the authorities.
	Ends time.Time
	Err  error // the file can't be used
}

// Certificates returns the configured certificates. It reads their files, which may have changed
// since the last time.
func Certificates(c *config.Config) (all []Certificate) {
	for _, f := range []struct {
		key, file   string
		authorities bool
	}{
		{"tls.cert", c.TLS.Cert, false}, {"tls.clientCA", c.TLS.ClientCA, true},
		{"nats.tls.cert", c.NATS.TLS.Cert, false}, {"nats.tls.ca", c.NATS.TLS.CA, true},
		{"nats.websocket.cert", c.NATS.WebSocket.Cert, false},
		{"nats.cluster.tls.cert", c.NATS.Cluster.TLS.Cert, false}, {"nats.cluster.tls.ca", c.NATS.Cluster.TLS.CA, true},
	} {
		if f.file == "" {
			continue
		}
		ends, err := endOf(f.file, f.authorities)
		all = append(all, Certificate{Key: f.key, File: f.file, Ends: ends, Err: err})
	}
	return all
}

func endOf(file string, authorities bool) (ends time.Time, err error) {
	rest, err := os.ReadFile(file)
	if err != nil {
		return ends, err
	}
	for block, rest := pem.Decode(rest); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return ends, err
		}
		if ends.IsZero() || authorities == cert.NotAfter.After(ends) {
			ends = cert.NotAfter
		}
	}
	if ends.IsZero() {
		return ends, errors.New("there is no certificate in it")
	}
	return ends, nil
}

// Finding says why a certificate needs a person, or "". It is a problem if that is urgent.
func (c Certificate) Finding(now time.Time) (found string, problem bool) {
	left := c.Ends.Sub(now)
	switch {
	case c.Err != nil:
		return c.Key + ": " + c.Err.Error(), true
	case left <= 0:
		return c.Key + " expired on " + c.Ends.UTC().Format(time.DateOnly), true
	case left < CertificateWarning:
		return c.Key + " expires on " + c.Ends.UTC().Format(time.DateOnly), left < CertificateProblem
	}
	return "", false
}

// Advice is what to do about a finding.
func (c Certificate) Advice() string {
	if c.Key == "tls.cert" || c.Key == "tls.clientCA" {
		return "renew " + c.File + ": the daemon reads it again by itself"
	}
	return "renew " + c.File + ", and restart the daemon"
}
