package jetstream

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// A server with GroupSync answers before what it has stored is on the disk. Then this
// file stands between its answers and everybody else: an append is acknowledged, and a
// message is handed to a reader, after a sync that covers it. The server republishes
// nothing; the log does, after the sync.

// synced is, for each stream of the log, up to which sequence it is known to be on the
// disk; nil if the server's answer says so already.
type synced map[string]*atomic.Uint64

// startSync has the log wait for the disk for these streams, if the server does not.
func (l *link) startSync(streams []string) {
	if !l.opts.groupSync() {
		return
	}
	l.synced = synced{}
	for _, name := range streams {
		l.synced[name] = &atomic.Uint64{}
	}
}

// noteSynced takes note that a stream is on the disk up to a sequence.
func (l *link) noteSynced(stream string, seq uint64) { raise(l.synced[stream], seq) }

// groupSync reports whether the log waits for the disk itself.
func (l *link) groupSync() bool { return l.synced != nil }

// await returns when a stream is on the disk up to a sequence that the server has
// answered with.
func (l *link) await(ctx context.Context, stream string, seq uint64) error {
	known := l.synced[stream]
	if known == nil || seq <= known.Load() {
		return nil
	}
	if err := l.opts.Server.Sync(ctx); err != nil {
		return fmt.Errorf("%w: %w", eventlog.ErrUnavailable, err)
	}
	raise(known, seq)
	return nil
}

// raise sets a to at least n.
func raise(a *atomic.Uint64, n uint64) {
	for {
		was := a.Load()
		if n <= was || a.CompareAndSwap(was, n) {
			return
		}
	}
}

// awaitStored is await for messages that were just stored.
func (l *link) awaitStored(ctx context.Context, m *nats.Msg, last uint64) error {
	if !l.groupSync() {
		return nil
	}
	if err := l.await(ctx, layout.StreamOf(m.Subject), last); err != nil {
		return fmt.Errorf("%w: %w", eventlog.ErrOutcomeUnknown, err)
	}
	return nil
}

// awaitRemoved returns when what the server has removed or overwritten in some streams is
// so on the disk.
func (l *link) awaitRemoved(ctx context.Context, streams ...string) error {
	if !l.groupSync() {
		return nil
	}
	return l.opts.Server.SyncStreams(ctx, streams...)
}
