package daemon

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
)

// certificates are the HTTP server's key and certificate, and the authority of
// its clients' certificates. A handshake reads the files again when one of them
// has changed; if they can't be used, the last good ones stay in use.
type certificates struct {
	files config.ServerTLS
	log   *slog.Logger

	mu     sync.Mutex
	seen   [3]stamp // of the files that were read last, good or not
	config *tls.Config
}

// stamp distinguishes two versions of a file.
type stamp struct {
	changed time.Time
	size    int64
}

// openCertificates returns nil if the server is to use plain HTTP.
func openCertificates(files config.ServerTLS, log *slog.Logger) (*certificates, error) {
	if files.Cert == "" {
		return nil, nil
	}
	c := &certificates{files: files, log: log}
	c.seen = c.stamps()
	var err error
	c.config, err = c.read()
	return c, err
}

func (c *certificates) stamps() (all [3]stamp) {
	for i, name := range []string{c.files.Cert, c.files.Key, c.files.ClientCA} {
		if info, err := os.Stat(name); err == nil {
			all[i] = stamp{info.ModTime(), info.Size()}
		}
	}
	return all
}

func (c *certificates) read() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(c.files.Cert, c.files.Key)
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	t := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, Certificates: []tls.Certificate{pair}}
	if c.files.ClientCA == "" {
		return t, nil
	}
	if t.ClientCAs, err = flags.Authorities(c.files.ClientCA); err != nil {
		return nil, fmt.Errorf("tls.clientCA: %w", err)
	}
	t.ClientAuth = tls.VerifyClientCertIfGiven // see withCertificates
	return t, nil
}

// current returns what a handshake uses.
func (c *certificates) current(*tls.ClientHelloInfo) (*tls.Config, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.stamps()
	if now == c.seen {
		return c.config, nil
	}
	c.seen = now
	fresh, err := c.read()
	if err != nil {
		c.log.Error("the certificate has changed and can't be used: the old one stays in use", "error", err)
		return c.config, nil
	}
	c.config = fresh
	c.log.Info("the certificate was read again")
	return fresh, nil
}

// server returns the configuration of an http.Server.
func (c *certificates) server() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: c.current}
}

// withCertificates refuses requests without a certificate, if the server has an
// authority for those of clients. GET /healthz needs none: it is for load
// balancers and the service manager.
func (c *certificates) withCertificates(h http.Handler) http.Handler {
	if c == nil || c.files.ClientCA == "" {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" && (r.TLS == nil || len(r.TLS.VerifiedChains) == 0) {
			dropBody(w, r)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"error":"a client certificate is required","code":"UNAUTHORIZED"}`)) // the client may be gone
			return
		}
		h.ServeHTTP(w, r)
	})
}
