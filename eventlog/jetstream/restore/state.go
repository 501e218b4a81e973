package restore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/streams"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// State is what a deployment has of helixd.
type State struct {
	// Streams are the names of helixd's streams.
	Streams []string
	// Restoring is the id of a restore that has begun and is not finished, empty if there
	// is none.
	Restoring string
	// Created is when the log's first stream was created; zero: there is no log.
	Created time.Time
}

// Log reports whether there is a log that nodes can open.
func (s State) Log() bool { return !s.Created.IsZero() && s.Restoring == "" }

// Look returns the state of a deployment.
func Look(ctx context.Context, nc *nats.Conn) (State, error) {
	s, _, err := look(ctx, nc)
	return s, err
}

func look(ctx context.Context, nc *nats.Conn) (s State, js natsjs.JetStream, err error) {
	if js, err = link.NewJetStream(nc); err != nil {
		return s, nil, fmt.Errorf("jetstream: %w", err)
	}
	err = link.Settle(ctx, nc, func(ctx context.Context) error {
		s = State{}
		names := js.StreamNames(ctx)
		for name := range names.Name() {
			if strings.HasPrefix(name, layout.StreamPrefix) {
				s.Streams = append(s.Streams, name)
			}
		}
		if err := names.Err(); err != nil {
			return err
		}
		first, err := js.Stream(ctx, layout.LogStream(0))
		if errors.Is(err, natsjs.ErrStreamNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		info := first.CachedInfo()
		s.Restoring, s.Created = info.Config.Metadata[streams.MetadataRestoring], info.Created
		return nil
	})
	if err != nil {
		return s, js, fmt.Errorf("jetstream: list streams: %w", err)
	}
	return s, js, nil
}

// Discard removes what a restore that was not finished has left. No node has opened its
// log, so all streams of helixd are its streams. Errors: ErrNotEmpty: there are streams of another
// log.
func Discard(ctx context.Context, nc *nats.Conn, id string) error {
	s, js, err := look(ctx, nc)
	if err != nil || len(s.Streams) == 0 {
		return err
	}
	if id == "" || s.Restoring != id {
		return fmt.Errorf("%w: there is a stream %s", ErrNotEmpty, s.Streams[0])
	}
	for _, name := range firstStreamLast(s.Streams) { // it has the mark
		err := link.Settle(ctx, nc, func(ctx context.Context) error {
			if err := js.DeleteStream(ctx, name); !errors.Is(err, natsjs.ErrStreamNotFound) {
				return err
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("jetstream: restore: stream %s: %w", name, err)
		}
	}
	return nil
}

// firstStreamLast moves the log's first stream to the end of names.
func firstStreamLast(names []string) []string {
	first := layout.LogStream(0)
	return append(slices.DeleteFunc(names, func(n string) bool { return n == first }), first)
}

// lookEvery is the pause between two looks of [Await].
const lookEvery = 500 * time.Millisecond

// Await returns when the deployment has a log that nodes can open. It creates none.
func Await(ctx context.Context, nc *nats.Conn) error {
	for {
		s, err := Look(ctx, nc)
		if err == nil && s.Log() {
			return nil
		}
		if nc.IsClosed() {
			return fmt.Errorf("jetstream: wait for the log: %w", nats.ErrConnectionClosed)
		}
		if serr := eventlog.Sleep(ctx, lookEvery); serr != nil {
			return errors.Join(serr, err)
		}
	}
}
