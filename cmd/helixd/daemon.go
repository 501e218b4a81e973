package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/queue"
	"github.com/helixd/helixd/cmd/helixd/config"
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
	url          string // where HTTP listens
	natsURL      string // where NATS clients from outside connect, or empty
	webSocketURL string // the same over WebSocket
	info         eventlog.Info
	front        *front
	closers      []func()
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
	d.front = newFront(log)
	if c.NATS.Cluster.Listen != "" { // it may wait for others for long; alone, clients wait for it
		d.front.serve(listener)
	}
	minter, err := minterOf(c)
	if err != nil {
		return err
	}
	dial, durability, err := d.connect(ctx, c, openNATS, subscriberKeys(minter), log)
	if err != nil {
		return err
	}
	nc, err := dial()
	if err != nil {
		return err
	}
	d.onClose(nc.Close)
	ctx, cancel := context.WithTimeout(ctx, openTimeoutOf(c))
	defer cancel()
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
	node := "node-" + ulid.Make().String()
	between, err := dial() // what nodes say to each other does not wait behind the log's traffic
	if err != nil {
		return err
	}
	d.onClose(between.Close)
	runs, err := queue.Open(ctx, between, queue.Options{Node: node, Replicas: c.NATS.Replicas, Logger: log})
	if err != nil {
		return err
	}
	d.onClose(runs.Close)
	loop, err := agentloop.New(store, agents, &agentloop.Options{Node: node, Logger: log, States: states, Queue: runs})
	if err != nil {
		return err
	}
	d.onClose(loop.Stop)
	opts := httpapi.Options{
		Log: store, Loop: loop, States: states, AllowUnauthenticated: c.Auth.AllowUnauthenticated, Logger: log, Version: version(),
		Origins: c.CORS.Origins, Chat: chatOf(c.Chat, agents),
		Subscribe: subscribing(minter, c.NATS.Subscribers, d.natsURL, d.webSocketURL),
	}
	if opts.Auth, err = authOf(c.Auth); err != nil {
		return err
	}
	api, err := httpapi.New(opts)
	if err != nil {
		return err
	}
	d.onClose(func() { api.Close() })
	d.onClose(func() { d.front.shutdown(func() { api.Close() }) }) // streams would never end by themselves
	d.onClose(func() {
		ctx, cancel := context.WithTimeout(context.Background(), c.DrainTimeout)
		defer cancel()
		runs.Leave()
		loop.Drain(ctx)
	})
	d.url = "http://" + listener.Addr().String()
	if err := runs.Serve(loop); err != nil {
		return err
	}
	d.front.open(api)
	d.front.serve(listener)
	return nil
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
	ended := make(chan error, 1)
	go func() { ended <- d.front.wait() }()
	select {
	case err := <-ended:
		d.close()
		return err
	case <-ctx.Done():
		d.close()
		return <-ended
	}
}
