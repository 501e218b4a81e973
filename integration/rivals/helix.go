package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
)

// mode is how durable an acknowledged append is, and what Redis calls it.
type mode struct {
	durability  eventlog.Durability
	sync        time.Duration
	appendFsync string
}

var (
	everyAppend = mode{eventlog.DurabilityFsync, 0, "always"}
	everySecond = mode{"interval=1s", time.Second, "everysec"}
)

// helix is a helixd log on its own server in this process, and an
// ordinary connection to that server.
type helix struct {
	mode
	dir string
	srv *embed.Server
	nc  *nats.Conn
	js  natsjs.JetStream
	log *jetstream.Log
}

// startHelix starts on a folder, which may hold data already.
func startHelix(ctx context.Context, dir string, m mode) (*helix, error) {
	h, err := startNATS(ctx, dir, m)
	if err != nil {
		return nil, err
	}
	if h.log, err = jetstream.Open(ctx, h.nc, &jetstream.Options{Durability: m.durability, Server: h.srv}); err != nil {
		h.stop()
		return nil, err
	}
	return h, nil
}

// startNATS is the same server without a helixd log.
func startNATS(ctx context.Context, dir string, m mode) (*helix, error) {
	srv, err := embed.Start(ctx, embed.Options{DataDir: dir, SyncInterval: m.sync, GroupSync: true})
	if err != nil {
		return nil, err
	}
	h := &helix{mode: m, dir: dir, srv: srv}
	if h.nc, err = srv.Connect(); err == nil {
		h.js, err = natsjs.New(h.nc)
	}
	if err != nil {
		h.stop()
		return nil, err
	}
	return h, nil
}

// newHelix starts on a fresh folder.
func (b *bench) newHelix(ctx context.Context, m mode) (*helix, error) {
	dir, err := b.tempDir("helixd")
	if err != nil {
		return nil, err
	}
	return startHelix(ctx, dir, m)
}

// stop ends the server and keeps its data.
func (h *helix) stop() {
	if h.log != nil {
		h.log.Close()
	}
	if h.nc != nil {
		h.nc.Close()
	}
	if h.srv != nil {
		h.srv.Stop()
	}
}

// discard ends the server and removes its data.
func (h *helix) discard() {
	h.stop()
	os.RemoveAll(h.dir)
}

func (h *helix) figure(value float64) figure {
	return figure{System: "helixd", Durability: string(h.durability), Value: value}
}

// How settle decides that a log is quiet, and when it gives up.
const (
	settlePoll  = 100 * time.Millisecond
	settleQuiet = 50 // polls without a change: sealing waits for the disk, two intervals
	settleLimit = 30 * time.Second
)

// settle waits until the log is idle in the background: until no stream of the server has
// changed for a second. If the log gets a way to request that (sealing now, for one),
// call it here.
func settle(ctx context.Context, h *helix) error {
	ctx, cancel := context.WithTimeoutCause(ctx, settleLimit, fmt.Errorf("the log was not quiet within %s", settleLimit))
	defer cancel()
	tick := time.NewTicker(settlePoll)
	defer tick.Stop()
	for quiet, last := 0, ""; quiet < settleQuiet; {
		now := ""
		streams := h.js.ListStreams(ctx)
		for s := range streams.Info() {
			now += fmt.Sprintln(s.Config.Name, s.State.LastSeq, s.State.Msgs, s.State.Bytes)
		}
		if err := streams.Err(); err != nil {
			return fmt.Errorf("settle: %w", err)
		}
		if quiet++; now != last {
			quiet, last = 0, now
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
