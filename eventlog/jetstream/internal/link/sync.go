package link

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// A server with GroupSync answers before what it has stored is on the disk. This file
// then delays what depends on the answer: an append is acknowledged, and a message passed
// to a reader, only after a sync that covers it. The server republishes nothing; the log
// does, after the sync.

// synced is, for each stream of the log, the sequence up to which it is known to be on
// the disk; nil if the server's answer already implies that.
type synced map[string]*atomic.Uint64

// StartSync makes the log wait for the disk for these streams, if the server does not.
func (l *Link) StartSync(streams []string) {
	if !l.Opts.GroupSync() {
		return
	}
	l.synced = synced{}
	for _, name := range streams {
		l.synced[name] = &atomic.Uint64{}
	}
}

// NoteSynced records that a stream is on the disk up to a sequence.
func (l *Link) NoteSynced(stream string, seq uint64) { Raise(l.synced[stream], seq) }

// GroupSync reports whether the log itself waits for the disk.
func (l *Link) GroupSync() bool { return l.synced != nil }

// Await returns when a stream is on the disk up to a sequence that the server has
// answered. Errors: eventlog.ErrUnavailable; ctx's.
func (l *Link) Await(ctx context.Context, stream string, seq uint64) error {
	known := l.synced[stream]
	if known == nil || seq <= known.Load() {
		return nil
	}
	if err := l.Opts.Server.Sync(ctx); err != nil {
		return fmt.Errorf("%w: %w", eventlog.ErrUnavailable, err)
	}
	Raise(known, seq)
	return nil
}

// Raise sets a to at least n.
func Raise(a *atomic.Uint64, n uint64) {
	for {
		was := a.Load()
		if n <= was || a.CompareAndSwap(was, n) {
			return
		}
	}
}

// awaitStored is Await for messages that were just stored.
func (l *Link) awaitStored(ctx context.Context, m *nats.Msg, last uint64) error {
	if !l.GroupSync() {
		return nil
	}
	if err := l.Await(ctx, layout.StreamOf(m.Subject), last); err != nil {
		return fmt.Errorf("%w: %w", eventlog.ErrOutcomeUnknown, err)
	}
	return nil
}

// AwaitRemoved returns when removals and overwrites of the server in some streams are on
// the disk.
func (l *Link) AwaitRemoved(ctx context.Context, streams ...string) error {
	if !l.GroupSync() {
		return nil
	}
	return l.Opts.Server.SyncStreams(ctx, streams...)
}
