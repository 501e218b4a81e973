package jetstream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// metadataBegins is the key of a log stream that was made when the log grew: its first
// sequence, before which it has never had anything.
const metadataBegins = "helix.begins"

// beginsWith is the first sequence of a stream that was made when the log grew, else 0.
func beginsWith(metadata map[string]string) uint64 {
	n, _ := strconv.ParseUint(metadata[metadataBegins], 10, 64)
	return n
}

// grow gives the log more partitions: first the new streams and the table of the sessions
// that stay where they are, see places, then the new number in the first stream. Until that one
// update the log has the old number, so that every process that opens it places
// every session as before: a growth that breaks off has changed nothing, and the next one
// begins again. After it everything is there that the new number needs.
//
// The sequences of the new streams begin after those of the others: a session that was erased
// and is created again in another partition has later sequences than before.
func (l *streamSet) grow(ctx context.Context, n int) error {
	has := l.places.Partitions()
	if !l.opts.Grow {
		return fmt.Errorf("jetstream: the log has %d partitions, not %d: keep %d, or, %s", has, n, has, growAdvice)
	}
	if err := l.checkUnused(ctx); err != nil {
		return err
	}
	if err := l.loadPlaces(ctx); err != nil {
		return err
	}
	sessions, begins, err := l.beforeGrowth(ctx)
	if err != nil {
		return err
	}
	settled := l.places.Staying(sessions, n)
	l.setNumbers(append(append([]int(nil), l.places.Numbers...), n))
	var made []string
	for p := range n {
		for _, c := range l.streamsOf(p) {
			if p < has && c.Name != layout.PlacesStream {
				continue
			}
			if c.Name == layout.LogStream(p) {
				c.FirstSeq = begins
				c.Metadata = maps.Clone(c.Metadata)
				c.Metadata[metadataBegins] = strconv.FormatUint(begins, 10)
			}
			if err := l.makeFor(ctx, c); err != nil {
				return err
			}
			made = append(made, c.Name)
		}
	}
	if err := l.storeSettled(ctx, len(l.places.Settled), settled); err != nil {
		return err
	}
	if err := l.syncGrowth(ctx, made...); err != nil {
		return err
	}
	first := l.streamsOf(0)[0]
	s, err := l.findStream(ctx, first.Name)
	if err != nil {
		return err
	}
	if err := l.setMetadata(ctx, s, first); err != nil {
		return err
	}
	return l.syncGrowth(ctx, first.Name)
}

// checkUnused refuses to grow a log that a node follows for its read models.
func (l *streamSet) checkUnused(ctx context.Context) error {
	s, err := l.findStream(ctx, layout.LogStream(0))
	if err != nil {
		return err
	}
	if n := s.CachedInfo().State.Consumers; n > 0 {
		return fmt.Errorf("jetstream: the log can't grow to more partitions while %s of stream %s exist, as a running node has: stop all nodes, wait for %v, and try again",
			count(n, "consumer"), layout.LogStream(0), feedForgotten)
	}
	return nil
}

// beforeGrowth returns all sessions that the log has anything of, and the first sequence
// after all that it has given.
func (l *streamSet) beforeGrowth(ctx context.Context) (sessions map[string]bool, begins uint64, err error) {
	sessions, begins = map[string]bool{}, 1
	for p := range l.places.Partitions() {
		last, err := l.lastOf(ctx, layout.LogStream(p))
		if err != nil {
			return nil, 0, err
		}
		begins = max(begins, last+1)
		for _, stream := range []string{layout.LogStream(p), layout.SegmentStream(p), layout.BlobStream} {
			if stream == layout.BlobStream && p > 0 { // it is all partitions'
				continue
			}
			some, err := l.subjectsOf(ctx, stream, ">")
			if err != nil {
				return nil, 0, err
			}
			for session := range some {
				sessions[session] = true
			}
		}
	}
	return sessions, begins, nil
}

// makeFor makes a stream for a growth. One that is there was made for a growth that broke off:
// there is nothing in it, but for the table.
func (l *streamSet) makeFor(ctx context.Context, want natsjs.StreamConfig) error {
	s, err := l.findStream(ctx, want.Name)
	if errors.Is(err, natsjs.ErrStreamNotFound) {
		_, err = l.createStream(ctx, want)
		return err
	}
	if err != nil {
		return err
	}
	info := s.CachedInfo()
	if err := checkRestored(info.Config, want); err != nil {
		return err
	}
	if info.Config.Metadata[metadataPartitions] == "" || want.Name != layout.PlacesStream && info.State.Msgs > 0 {
		return fmt.Errorf("jetstream: the log can't grow: there is a stream %s that is not of the log: remove or rename it", want.Name)
	}
	if err := checkSettings(info.Config, want); err != nil {
		return err
	}
	if want.FirstSeq > info.State.LastSeq+1 {
		err = l.step(ctx, "purge", func(ctx context.Context) error { return s.Purge(ctx, natsjs.WithPurgeSequence(want.FirstSeq)) })
		if err != nil {
			return fmt.Errorf("jetstream: stream %s: %w", want.Name, err)
		}
	}
	return l.setMetadata(ctx, s, want)
}

// setMetadata gives a stream the metadata of want, beside what else it has.
func (l *streamSet) setMetadata(ctx context.Context, s natsjs.Stream, want natsjs.StreamConfig) error {
	config := s.CachedInfo().Config
	config.Metadata = maps.Clone(config.Metadata)
	for _, key := range []string{metadataPartitions, metadataBegins} {
		if value := want.Metadata[key]; value != "" {
			config.Metadata[key] = value
		}
	}
	err := settle(ctx, l.nc, func(ctx context.Context) error {
		return l.step(ctx, "grow", func(ctx context.Context) error {
			_, err := l.js.UpdateStream(ctx, config)
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("jetstream: stream %s: %w", want.Name, err)
	}
	return nil
}

// syncGrowth returns when streams are on the disk with their settings, where this process's
// server has them, also if it syncs by itself: it syncs no settings.
func (l *streamSet) syncGrowth(ctx context.Context, streams ...string) error {
	if l.opts.Server == nil {
		return nil
	}
	if err := l.opts.Server.Sync(ctx); err != nil {
		return fmt.Errorf("jetstream: %w", err)
	}
	if err := l.opts.Server.SyncStreams(ctx, streams...); err != nil {
		return fmt.Errorf("jetstream: %w", err)
	}
	return nil
}
