package link

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
)

// Server is a NATS server in this process, such as embed.Server. The log can have it
// overwrite, in its own files, messages that were removed from its streams.
type Server interface {
	// Name is the server's name in its cluster.
	Name() string
	// GroupSync reports whether an answer of the server promises nothing until Sync has
	// returned. Then only this process writes the streams.
	GroupSync() bool
	// MaxBatch is how many messages it accepts in one atomic batch.
	MaxBatch() int
	// Sync returns when everything that was stored before the call is on the disk.
	Sync(ctx context.Context) error
	// SyncStreams returns when the content of some streams is on the disk, with removals,
	// rewrites and the streams' settings.
	SyncStreams(ctx context.Context, streams ...string) error
	// Stage has streams stage their atomic batches in memory, where that is possible.
	Stage(streams ...string) error
	// Interest returns how many subscriptions a message on a subject reaches.
	Interest(subject string) int
	// Replica returns the state of the server's own replica of a stream; ok is false if
	// it has none.
	Replica(stream string) (first, last, messages uint64, ok bool)
	// Scrub overwrites removed messages with sequences between from and upTo in its files
	// of a stream, and returns how many it overwrote and how many it found but could not.
	// A subject may end in ".>".
	Scrub(ctx context.Context, stream, subject string, from, upTo uint64) (overwritten, left int, err error)
	// Holds returns how many messages Scrub would have to overwrite.
	Holds(ctx context.Context, stream, subject string, from, upTo uint64) (int, error)
	// ScrubAtStart makes the server scrub when it next starts.
	ScrubAtStart(stream, subject string, upTo uint64) error
	// ScrubPurged overwrites the bytes that a purge by sequence has left of a subject in
	// the block in which the purge ended.
	ScrubPurged(ctx context.Context, stream, subject string) error
	// Rescrub repeats Scrub for bytes that a purge may have restored.
	Rescrub(ctx context.Context) error
	// AgreementHolds reports whether one of the texts is in an entry, stored before a
	// moment, of the Raft logs of its replicas.
	AgreementHolds(ctx context.Context, before time.Time, texts ...string) (bool, error)
	// Agreed makes it drop the removable part of such a log.
	Agreed(stream string)
}

// syncingServer returns the server at the other end of an in-process connection, if it
// has GroupSync: otherwise the log would acknowledge records that are not on the disk.
func syncingServer(nc *nats.Conn) Server {
	if s, ok := nc.Opts.InProcessServer.(Server); ok && s.GroupSync() {
		return s
	}
	return nil
}
