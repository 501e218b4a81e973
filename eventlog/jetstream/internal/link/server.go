package link

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
)

// Server is a NATS server in this process, as embed.Server is: what its streams
// remove the log can have it overwrite in its own files.
type Server interface {
	// Name is the server's name in its cluster.
	Name() string
	// GroupSync reports whether an answer of the server promises nothing before Sync
	// has returned. Then only this process writes the streams.
	GroupSync() bool
	// MaxBatch is how many messages it takes in one atomic batch.
	MaxBatch() int
	// Sync returns when all that was stored before the call is on the disk.
	Sync(ctx context.Context) error
	// SyncStreams returns when all that some streams hold is on the disk, also what was
	// removed or rewritten in them, and their settings.
	SyncStreams(ctx context.Context, streams ...string) error
	// Interest returns how many subscriptions a message on a subject reaches.
	Interest(subject string) int
	// Replica returns what its own replica of a stream has; ok is false if it has
	// none.
	Replica(stream string) (first, last, messages uint64, ok bool)
	// Scrub overwrites removed messages up to a sequence in its files of a stream,
	// and returns how many of those are left that it found. A subject may end in
	// ".>".
	Scrub(ctx context.Context, stream, subject string, from, upTo uint64) (overwritten, left int, err error)
	// Holds returns how many messages Scrub would have to overwrite.
	Holds(ctx context.Context, stream, subject string, from, upTo uint64) (int, error)
	// ScrubAtStart has Scrub done when the server is started again.
	ScrubAtStart(stream, subject string, upTo uint64) error
	// ScrubPurged overwrites what a purge by sequence has left of a subject in the block in
	// which it ended.
	ScrubPurged(ctx context.Context, stream, subject string) error
	// Rescrub repeats Scrub where a purge may have undone it.
	Rescrub(ctx context.Context) error
	// AgreementHolds reports whether a text is in an entry, from before a moment,
	// of the logs by which its replicas agree with the others.
	AgreementHolds(ctx context.Context, before time.Time, texts ...string) (bool, error)
	// Agreed has it drop what it can from such a log.
	Agreed(stream string)
}

// syncingServer returns the server at the other end of an in-process connection, if it has
// GroupSync: else the log would acknowledge what is not on the disk.
func syncingServer(nc *nats.Conn) Server {
	if s, ok := nc.Opts.InProcessServer.(Server); ok && s.GroupSync() {
		return s
	}
	return nil
}
