package jetstream

import (
	"context"
	"iter"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog"
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
	// Partitions is the number of streams. 0 means those that there are, else 1,
	// with more replicas 16. A log can't shrink; see Grow.
	Partitions int
	// Grow has [Open] call [Log.Grow] for a log that has fewer Partitions; else it refuses the log.
	Grow bool
	// Replicas of each stream; 0 means 1.
	Replicas int
	// Durability is what the server's operator knows of it; empty: what the
	// streams tell of their replicas, else unknown.
	Durability eventlog.Durability
	// Memory keeps the log in the server's memory: it ends with the server.
	// One replica only.
	Memory bool
	// Server is the NATS server of this process, if it keeps replicas of the
	// log: an erasure then overwrites, in its files, what is removed, and every
	// other server that keeps some has to be a node's that does so too. nil: the
	// servers overwrite message by message, and an erasure from more than one
	// replica stays pending: no node can know when it is done. On an in-process connection
	// of a server with GroupSync it is that server.
	Server Server
	// Beside names a stream in which others keep what they have of a session, and
	// its subject there, which ends in ".>"; they have the servers overwrite
	// it. An erasure is done when every replica has removed it.
	Beside func(session string, partition int) (stream, subject string)
	// Forget removes what others keep of a session that is being erased, at
	// least once, before another session of the id may be created.
	Forget func(ctx context.Context, session string) error
	// Refuses tells why nothing should be stored now, empty if it may; what
	// frees room may go on for longer. nil: there is never a reason.
	Refuses func(frees bool) string
	// Existing opens a log that exists as it is, with the partitions, the
	// replicas and the storage that it has, and creates nothing.
	Existing bool
	// ReadOnly is Existing for readers: settings that only writers rely on
	// are not looked at.
	ReadOnly bool
	// Metrics measure the log; nil: nothing does.
	Metrics *Metrics
}

// Log is an eventlog.Log on JetStream.
type Log struct {
	records *store.Store
	upkeep  *maintenance.Maintenance
	live    *live.Live
	feeds   *feed.Feeds
	checks  *verify.Verifier
}

var (
	_ eventlog.Archive  = (*Log)(nil)
	_ eventlog.Copier   = (*Log)(nil)
	_ eventlog.Feed     = (*Log)(nil)
	_ eventlog.Attacher = (*Log)(nil)
)

// Open returns the log on nc, creating its streams if they are missing. The
// connection stays the caller's. What the log could not keep its promises on
// is refused by name: a server that is too old, other partitions than the log
// was created with, a stream's settings. A cluster that has just come up is
// waited for, see Settle. A later connection to a server that is too old is not
// used to append; see Info.
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

// Close ends what the log does, and waits for it. It is idempotent. The connection stays open.
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

// Sessions implements eventlog.Log. A session that is idle for long may have
// left the log to its segments.
func (l *Log) Sessions(ctx context.Context) iter.Seq2[string, error] { return l.records.Sessions(ctx) }

// Follow implements eventlog.Log. A record names its predecessor, so that a loss of a live record
// is seen, and the record read from the log.
func (l *Log) Follow(ctx context.Context, session string, from uint64) iter.Seq2[eventlog.Record, error] {
	return l.live.Follow(ctx, session, from)
}

// Attach implements eventlog.Attacher.
func (l *Log) Attach(ctx context.Context, session string) (eventlog.Attachment, error) {
	return l.live.Attach(ctx, session)
}

// Identity implements eventlog.Feed: it is told by when the streams were made.
func (l *Log) Identity(ctx context.Context) (string, error) { return l.feeds.Identity(ctx) }

// Spans implements eventlog.Feed.
func (l *Log) Spans(ctx context.Context) ([]eventlog.Span, error) { return l.feeds.Spans(ctx) }

// Feed implements eventlog.Feed, with one consumer on the server. It makes the
// consumer again if it was lost, and fails if it gets nothing for 20 s that there is.
func (l *Log) Feed(ctx context.Context, partition int, from uint64) iter.Seq2[eventlog.Fed, error] {
	return l.feeds.Feed(ctx, partition, from)
}

// PartitionOf implements eventlog.Copier.
func (l *Log) PartitionOf(session string) int { return l.records.PartitionOf(session) }

// Partitions returns how many there are.
func (l *Log) Partitions() int { return l.records.Partitions() }

// Grow has the log get n partitions, while processes use it. What the log has stays where it is.
func (l *Log) Grow(ctx context.Context, n int) error { return l.upkeep.Grow(ctx, n) }

// Placement implements eventlog.Copier.
func (l *Log) Placement() *eventlog.Placement { return l.records.Placement() }

// Replicas tells how the replicas of the log's streams are.
func (l *Log) Replicas(ctx context.Context) (eventlog.Replicas, error) {
	return l.records.Replicas(ctx)
}

// Seal packs all that a session has into segments, the last one too, which
// may not be full. The log does so by itself; retention wants it at once.
func (l *Log) Seal(ctx context.Context, session string) error { return l.upkeep.Seal(ctx, session) }

// Erase implements eventlog.Log. If the call breaks off, FinishErasures does what is left.
func (l *Log) Erase(ctx context.Context, session string) (eventlog.Erasure, error) {
	return l.upkeep.Erase(ctx, session)
}

// FinishErasures continues the erasures that have begun and not ended, for example
// because their node has died, and returns how many have ended. Each node has to call it
// regularly: only a node can overwrite the files of its own server. Nodes with lead set,
// one or more, do the rest; they call [Log.FindErasures] when they begin to lead. Every hour such a
// node also looks for large payloads, over a day old, of sessions without a record, and removes them.
func (l *Log) FinishErasures(ctx context.Context, lead bool) (n int, err error) {
	return l.upkeep.FinishErasures(ctx, lead)
}

// FindErasures marks the sessions that are fenced and have no mark, as an older
// version leaves them whose node died. It looks at every session.
func (l *Log) FindErasures(ctx context.Context) error { return l.upkeep.FindErasures(ctx) }

// Purge implements eventlog.Archive. It seals what is old enough, so that a
// later purge can go further. Before a record goes, its copy in the segments
// is compared with it.
func (l *Log) Purge(ctx context.Context, o eventlog.PurgeOptions) ([]eventlog.Purged, error) {
	return l.upkeep.Purge(ctx, o)
}

// SealedBefore implements eventlog.Archive.
func (l *Log) SealedBefore(ctx context.Context, session string, t time.Time) (uint64, error) {
	return l.upkeep.SealedBefore(ctx, session, t)
}

// Trim implements eventlog.Archive. The session's last segment always stays.
// Large payloads stay until the session is erased: another record may name them.
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

// Verify walks everything that the streams have of a session and tells found
// what is wrong: in its records ([eventlog.Check]), in what links them, in its
// sealed segments, between those and the log, in its large payloads. It returns
// how many records there are. It changes nothing, and it does not stop at the
// first problem; its error is that it can't go on.
//
// It may run beside writers: what comes after its start it does not look at.
// It reads what readers read, through the server, which checks what it takes
// from its files but answers from memory what it has there: see
// embed.Folder.Check. On several replicas it sees the one that answers.
//
// What it can't find is the loss of the very last records of a session while
// nothing names them any more: no segment, no saved fold, no batch that they
// belonged to, no count of the server's, which remembers a loss that it has met
// itself until it is started again. The same is true of a session that is
// lost as a whole. [eventlog.FoundSequencesMissing] is what then remains.
func (l *Log) Verify(ctx context.Context, session string, found func(eventlog.Finding)) (records int, err error) {
	return l.checks.Verify(ctx, session, found)
}

// VerifySubjects returns the sessions that the streams have anything of, sorted
// by bytes, and tells found of messages that are no session's.
func (l *Log) VerifySubjects(ctx context.Context, found func(eventlog.Finding)) ([]string, error) {
	return l.checks.VerifySubjects(ctx, found)
}

// VerifyStreams tells found what the server itself says of the streams. It
// comes after the sessions have been read: the server notices some damage only
// then.
func (l *Log) VerifyStreams(ctx context.Context, found func(eventlog.Finding)) error {
	return l.checks.VerifyStreams(ctx, found)
}
