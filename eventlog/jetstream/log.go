package jetstream

import (
	"context"
	"iter"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/integrity"
	"github.com/helixd/helixd/eventlog/jetstream/internal/feed"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/live"
	"github.com/helixd/helixd/eventlog/jetstream/internal/maintenance"
	"github.com/helixd/helixd/eventlog/jetstream/internal/store"
	"github.com/helixd/helixd/eventlog/jetstream/internal/verify"
)

// Options configure a log. Zero values mean the defaults of an embedded
// server.
type Options struct {
	// Partitions is the number of streams. 0 means the number that exists, else 1, or 16
	// with more than one replica. A log can't shrink; see Grow.
	Partitions int
	// Grow makes [Open] call [Log.Grow] for a log that has fewer Partitions; otherwise
	// Open refuses the log.
	Grow bool
	// Replicas of each stream; 0 means 1.
	Replicas int
	// Durability is what the server's operator knows of it; empty: what the streams'
	// replicas imply, else unknown.
	Durability eventlog.Durability
	// Memory keeps the log in the server's memory: it ends with the server. It allows one
	// replica only.
	Memory bool
	// Server is the NATS server of this process, if it has replicas of the log. An
	// erasure then overwrites the removed messages in its files, and every other server
	// with a replica must belong to a node that does the same. nil: the servers overwrite
	// message by message, and an erasure from more than one replica stays pending, since
	// no node can know when it is done. If the connection is in-process, to a server with
	// GroupSync, it is that server.
	Server Server
	// Beside returns a stream in which others store data of a session, and its subject
	// there, which ends in ".>"; they have the servers overwrite it. An erasure is done
	// when every replica has removed it.
	Beside func(session string, partition int) (stream, subject string)
	// Forget removes data of others about a session that is being erased. It is called at
	// least once before another session of the id may be created.
	Forget func(ctx context.Context, session string) error
	// Refuses returns why nothing should be stored now, empty if it may; frees: the
	// operation frees space, which may continue for longer. nil: always empty.
	Refuses func(frees bool) string
	// Existing opens a log that exists as it is, with the partitions, the
	// replicas and the storage that it has, and creates nothing.
	Existing bool
	// ReadOnly is Existing for readers: settings that only writers need are not checked.
	ReadOnly bool
	// Metrics measure the log; nil: no metrics.
	Metrics *Metrics
}

// Log is an eventlog.Log on JetStream. It may be used from many goroutines.
type Log struct {
	records *store.Store
	upkeep  *maintenance.Maintenance
	live    *live.Live
	feeds   *feed.Feeds
	checks  *verify.Verifier
}

var (
	_ eventlog.Archive    = (*Log)(nil)
	_ eventlog.Copier     = (*Log)(nil)
	_ eventlog.ChangeFeed = (*Log)(nil)
	_ eventlog.Attacher   = (*Log)(nil)
)

// Open returns the log on nc, and creates its streams if they are missing. The connection
// stays the caller's. If the log could not keep its promises, the error names the reason:
// a server that is too old, other partitions than the log was created with, a stream's
// settings. Open waits for a cluster that has just started, see Settle. If the connection
// later moves to a server that is too old, the log does not append; see Info.
func Open(ctx context.Context, nc *nats.Conn, o *Options) (*Log, error) {
	if o == nil {
		o = &Options{}
	}
	l := &Log{}
	_, err := maintenance.Open(ctx, nc, link.Options{
		Partitions: o.Partitions, Grow: o.Grow, Replicas: o.Replicas, Durability: o.Durability, Memory: o.Memory,
		Server: o.Server, Beside: o.Beside, Forget: o.Forget, Refuses: o.Refuses,
		Existing: o.Existing, ReadOnly: o.ReadOnly, Metrics: o.Metrics,
	}, func(upkeep *maintenance.Maintenance) {
		l.upkeep, l.records = upkeep, upkeep.Store
		l.live, l.feeds, l.checks = live.New(l.records), feed.New(l.records), verify.New(l.records)
		l.live.Start()
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Close ends the log's work and waits for it. It is idempotent. The connection stays
// open.
func (l *Log) Close() error { return l.records.Close() }

// Info implements eventlog.Log.
func (l *Log) Info() eventlog.Info { return l.records.Info() }

// Append implements eventlog.Log.
func (l *Log) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (last uint64, err error) {
	return l.records.Append(ctx, session, expected, entries)
}

// Hold implements eventlog.Log.
func (l *Log) Hold(ctx context.Context, session string) (held context.Context, release func()) {
	return l.records.Hold(ctx, session)
}

// Head implements eventlog.Log: it asks the streams' leaders.
func (l *Log) Head(ctx context.Context, session string) (uint64, error) {
	return l.records.Head(ctx, session)
}

// Read implements eventlog.Log.
func (l *Log) Read(ctx context.Context, session string, from, to uint64) iter.Seq2[eventlog.Record, error] {
	return l.records.Read(ctx, session, from, to)
}

// Sessions implements eventlog.Log. After a purge only segments may have an idle session.
func (l *Log) Sessions(ctx context.Context) iter.Seq2[string, error] { return l.records.Sessions(ctx) }

// Follow implements eventlog.Log. A record names its predecessor, so that a lost live
// record is noticed and read from the log.
func (l *Log) Follow(ctx context.Context, session string, from uint64) iter.Seq2[eventlog.Record, error] {
	return l.live.Follow(ctx, session, from)
}

// Attach implements eventlog.Attacher.
func (l *Log) Attach(ctx context.Context, session string) (eventlog.Attachment, error) {
	return l.live.Attach(ctx, session)
}

// Identity implements eventlog.ChangeFeed: a log is identified by the creation time of its
// streams.
func (l *Log) Identity(ctx context.Context) (string, error) { return l.feeds.Identity(ctx) }

// Spans implements eventlog.ChangeFeed.
func (l *Log) Spans(ctx context.Context) ([]eventlog.Span, error) { return l.feeds.Spans(ctx) }

// Feed implements eventlog.ChangeFeed, with one consumer on the server. It replaces a lost
// consumer, and fails if it makes no progress for 20 s.
func (l *Log) Feed(ctx context.Context, partition int, from uint64) iter.Seq2[eventlog.Change, error] {
	return l.feeds.Feed(ctx, partition, from)
}

// PartitionOf implements eventlog.Copier.
func (l *Log) PartitionOf(session string) int { return l.records.PartitionOf(session) }

// Partitions returns the number of partitions.
func (l *Log) Partitions() int { return l.records.Partitions() }

// Grow increases the number of partitions to n while processes use the log. Existing
// sessions stay in their partitions. Errors: ErrUnavailable; an error that says why the
// log can't grow.
func (l *Log) Grow(ctx context.Context, n int) error { return l.upkeep.Grow(ctx, n) }

// Placement implements eventlog.Copier.
func (l *Log) Placement() *eventlog.Placement { return l.records.Placement() }

// Replicas returns the servers with replicas of the log's streams, and whether they are
// up. It fails if a stream has no leader.
func (l *Log) Replicas(ctx context.Context) (eventlog.Replicas, error) {
	return l.records.Replicas(ctx)
}

// Seal packs all records of a session into segments, the last of which may not be full.
// The log does so in the background; retention needs it at once.
func (l *Log) Seal(ctx context.Context, session string) error { return l.upkeep.Seal(ctx, session) }

// Erase implements eventlog.Log. If the call is interrupted, FinishErasures does the
// rest.
func (l *Log) Erase(ctx context.Context, session string) (eventlog.Erasure, error) {
	return l.upkeep.Erase(ctx, session)
}

// FinishErasures continues the erasures that have begun and not ended, for example
// because their node has died, and returns how many have ended. Each node has to call it
// regularly: only a node can overwrite the files of its own server. Nodes with lead set,
// one or more, do the rest; they call [Log.FindErasures] when they begin to lead. Every
// hour such a node also looks for blobs, over a day old, of sessions without a record,
// and removes them.
func (l *Log) FinishErasures(ctx context.Context, lead bool) (n int, err error) {
	return l.upkeep.FinishErasures(ctx, lead)
}

// FindErasures marks the sessions that have a tombstone and no mark; an older version
// leaves such a session if its node dies. It checks every session.
func (l *Log) FindErasures(ctx context.Context) error { return l.upkeep.FindErasures(ctx) }

// Purge implements eventlog.Archive. It seals records that are old enough, so that a
// later purge can remove more. Before a record is removed, its copy in the segments is
// compared with it.
func (l *Log) Purge(ctx context.Context, o eventlog.PurgeOptions) ([]eventlog.Purged, error) {
	return l.upkeep.Purge(ctx, o)
}

// SealedBefore implements eventlog.Archive.
func (l *Log) SealedBefore(ctx context.Context, session string, t time.Time) (uint64, error) {
	return l.upkeep.SealedBefore(ctx, session, t)
}

// Trim implements eventlog.Archive. The session's last segment always stays. Blobs stay
// until the session is erased: another record may name them.
func (l *Log) Trim(ctx context.Context, session string, upTo uint64) (floor uint64, err error) {
	return l.upkeep.Trim(ctx, session, upTo)
}

// Trimmable implements eventlog.Archive.
func (l *Log) Trimmable(ctx context.Context, session string, upTo uint64) (floor uint64, some bool, err error) {
	return l.upkeep.Trimmable(ctx, session, upTo)
}

// Size implements eventlog.Archive.
func (l *Log) Size(ctx context.Context) (uint64, error) { return l.upkeep.Size(ctx) }

// OldestSegment implements eventlog.Archive.
func (l *Log) OldestSegment(ctx context.Context, session string) (time.Time, error) {
	return l.upkeep.OldestSegment(ctx, session)
}

// Droppable implements eventlog.Archive.
func (l *Log) Droppable(ctx context.Context, t time.Time) iter.Seq2[string, error] {
	return l.upkeep.Droppable(ctx, t)
}

// Ends implements eventlog.Copier. It asks the streams' leaders.
func (l *Log) Ends(ctx context.Context) ([]uint64, error) { return l.upkeep.Ends(ctx) }

// Copy implements eventlog.Copier.
func (l *Log) Copy(ctx context.Context, session string, upTo uint64) (floor uint64, records iter.Seq2[eventlog.Copied, error], err error) {
	return l.upkeep.Copy(ctx, session, upTo)
}

// Verify checks everything that the streams have of a session and reports to found what
// is wrong: in its records ([integrity.Check]), in their links, in its segments, between
// those and the log, in its blobs. It returns how many records there are. It changes
// nothing and does not stop at the first problem; it returns an error if it can't
// continue.
//
// It may run while others append: it ignores what is stored after its start. It reads as
// readers do, through the server. The server checks what it reads from its files, but
// answers from memory what it has there: see embed.Folder.Check. On several replicas it
// checks the one that answers.
//
// It can't find the loss of the very last records of a session if nothing names them any
// more: no segment, no saved fold, no batch to which they belonged, and no count of the
// server, which forgets a loss that it has found itself when it restarts. The same holds
// for a session that is lost completely. Then only [integrity.FoundSequencesMissing]
// remains.
func (l *Log) Verify(ctx context.Context, session string, found func(integrity.Finding)) (records int, err error) {
	return l.checks.Verify(ctx, session, found)
}

// VerifySubjects returns the sessions of which the streams have anything, sorted by
// bytes, and reports messages that belong to no session to found.
func (l *Log) VerifySubjects(ctx context.Context, found func(integrity.Finding)) ([]string, error) {
	return l.checks.VerifySubjects(ctx, found)
}

// VerifyStreams reports to found what the server itself reports of the streams. Call it
// after the sessions were read: the server notices some damage only then.
func (l *Log) VerifyStreams(ctx context.Context, found func(integrity.Finding)) error {
	return l.checks.VerifyStreams(ctx, found)
}
