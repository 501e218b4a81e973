package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/snapshot"
	foldsjs "github.com/helixd/helixd/snapshot/jetstream"
)

const (
	openTimeout       = time.Minute      // to connect and find the streams
	shutdownTimeout   = 10 * time.Second // for requests that are under way
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
)

// daemon is everything that runs; close it in the reverse order of its start.
type daemon struct {
	url     string // where HTTP listens
	natsURL string // where NATS clients from outside connect, or empty
	info    eventlog.Info
	serve   func() error
	closers []func()
}

// startDaemon starts what the configuration says. What it started is stopped
// again if it fails.
func startDaemon(ctx context.Context, c *config.Config, agents []agentloop.Agent, openNATS bool, log *slog.Logger) (*daemon, error) {
	d := &daemon{}
	if err := d.start(ctx, c, agents, openNATS, log); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

func (d *daemon) start(ctx context.Context, c *config.Config, agents []agentloop.Agent, openNATS bool, log *slog.Logger) error {
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	d.onClose(func() { listener.Close() })
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	nc, durability, err := d.connect(ctx, c, openNATS, log)
	if err != nil {
		return err
	}
	d.onClose(nc.Close)
	store, err := jetstream.Open(ctx, nc, &jetstream.Options{
		Partitions: c.NATS.Partitions, Replicas: c.NATS.Replicas, Durability: durability,
	})
	if err != nil {
		return err
	}
	d.onClose(func() { store.Close() })
	d.info = store.Info()
	switch d.info.Durability {
	case eventlog.DurabilityUnknown, eventlog.DurabilityMemory:
		log.Warn("durability is "+string(d.info.Durability)+": "+d.info.Durability.Survives(), "backend", d.info.Backend)
	}
	folds, err := foldsjs.Open(ctx, nc, d.info.Partitions, c.NATS.Replicas)
	if err != nil {
		return err
	}
	states := snapshot.New(store, &snapshot.StoreOptions{Folds: folds, Logger: log})
	if agents, err = d.openMCP(ctx, c, agents, log); err != nil {
		return err
	}
	loop, err := agentloop.New(store, agents, &agentloop.Options{Logger: log, States: states})
	if err != nil {
		return err
	}
	d.onClose(loop.Stop)
	opts := httpapi.Options{
		Log: store, Loop: loop, States: states, AllowUnauthenticated: c.Auth.AllowUnauthenticated, Logger: log, Version: version(),
		Origins: c.CORS.Origins, Chat: chatOf(c.Chat, agents),
	}
	if opts.Auth, err = authOf(c.Auth); err != nil {
		return err
	}
	api, err := httpapi.New(opts)
	if err != nil {
		return err
	}
	d.onClose(func() { api.Close() })
	server := &http.Server{
		Handler: api, ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	d.onClose(func() {
		ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
		defer cancel()
		server.RegisterOnShutdown(func() { api.Close() }) // streams would never end by themselves
		if server.Shutdown(ctx) != nil {
			server.Close()
		}
	})
	d.url = "http://" + listener.Addr().String()
	d.serve = func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	}
	return nil
}

// connect returns a connection to the embedded server, or to the configured
// deployment, and what is known of its durability.
func (d *daemon) connect(ctx context.Context, c *config.Config, openNATS bool, log *slog.Logger) (*nats.Conn, eventlog.Durability, error) {
	if c.NATS.URL != "" {
		opts, err := natsOptions(c.NATS)
		if err != nil {
			return nil, "", err
		}
		nc, err := nats.Connect(c.NATS.URL, opts...)
		if err != nil {
			return nil, "", fmt.Errorf("nats: %w", err)
		}
		return nc, "", nil
	}
	if c.NATS.Replicas > 1 { // not a matter of the file alone: a flag may give the URL
		return nil, "", errors.New("nats.replicas: needs nats.url: the embedded server keeps one replica")
	}
	srv, err := embed.Start(ctx, embed.Options{
		DataDir: filepath.Join(c.DataDir, "jetstream"), SyncInterval: c.SyncInterval(), Listen: c.NATS.Listen,
		User: c.NATS.User, Password: c.NATS.Password.Reveal(), AllowRead: openNATS, Logger: log,
	})
	if err != nil {
		return nil, "", err
	}
	d.onClose(srv.Stop)
	d.natsURL = srv.ClientURL()
	nc, err := srv.Connect()
	return nc, eventlog.Durability(c.Durability), err
}

func natsOptions(n config.NATS) ([]nats.Option, error) {
	opts := []nats.Option{nats.Name("helixd"), nats.MaxReconnects(-1)}
	if !n.Credentials.IsZero() {
		if n.InlineCredentials() {
			opts = append(opts, nats.UserCredentialBytes([]byte(n.Credentials.Reveal())))
		} else {
			opts = append(opts, nats.UserCredentials(n.Credentials.Reveal()))
		}
	}
	if n.User != "" {
		opts = append(opts, nats.UserInfo(n.User, n.Password.Reveal()))
	}
	if !n.Token.IsZero() {
		opts = append(opts, nats.Token(n.Token.Reveal()))
	}
	if n.TLS.CA != "" {
		opts = append(opts, nats.RootCAs(n.TLS.CA))
	}
	if n.TLS.Cert != "" {
		opts = append(opts, nats.ClientCert(n.TLS.Cert, n.TLS.Key))
	}
	for _, file := range []string{n.TLS.CA, n.TLS.Cert, n.TLS.Key} {
		if file == "" {
			continue
		}
		if _, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("nats.tls: %w", err)
		}
	}
	return opts, nil
}

// authOf returns who decides about requests, or nil if nothing is configured.
func authOf(a config.Auth) (httpapi.Authenticator, error) {
	if !a.Configured() {
		return nil, nil
	}
	auth := httpapi.BearerTokens(tokensOf(a.Tokens))
	if a.JWT.JWKSFile == "" {
		return auth, nil
	}
	byJWT, err := httpapi.JWTAuth(a.JWT.Options())
	if err != nil {
		return nil, fmt.Errorf("auth.jwt: %w", err)
	}
	return httpapi.AnyOf(auth, byJWT), nil
}

func tokensOf(tokens []config.Token) []httpapi.Token {
	out := make([]httpapi.Token, len(tokens))
	for i, t := range tokens {
		out[i] = httpapi.Token{Token: t.Token.Reveal(), Name: t.Name, Operations: t.Operations, Sessions: t.Sessions}
	}
	return out
}

func (d *daemon) onClose(f func()) { d.closers = append(d.closers, f) }

// close stops everything: first what takes work, last the store.
func (d *daemon) close() {
	for i := len(d.closers) - 1; i >= 0; i-- {
		d.closers[i]()
	}
	d.closers = nil
}

// run serves until ctx ends.
func (d *daemon) run(ctx context.Context) error {
	failed := make(chan error, 1)
	go func() { failed <- d.serve() }()
	select {
	case err := <-failed:
		d.close()
		return err
	case <-ctx.Done():
		d.close()
		return <-failed
	}
}
