package store

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog/internal/hold"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/metrics"
	"github.com/helixd/helixd/eventlog/jetstream/internal/streams"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// Store appends and reads the records of sessions. It may be used from many goroutines.
type Store struct {
	*streams.Set
	// Appended is called with each acknowledged append; may be nil.
	Appended func(session string, expected, last uint64, records []wire.Stored)
	// Deliver passes an append to this node's followers of the session, and returns how
	// many subscriptions they share; nil: there are no followers.
	Deliver func(a *PendingAppend, last uint64, now time.Time) (subscriptions int)
	// Committers store appends, one for each possible partition.
	Committers [layout.MaxPartitions]*committer
	Metrics    *metrics.Log

	far     uint64 // farSequences
	few     uint64 // FewSequences
	ahead   int    // segmentsAhead
	Inline  int    // InlineBytes
	Holds   hold.Holds
	node    string        // identifies this log among all that are open on the deployment
	held    atomic.Uint64 // number of holds by this log
	beside  besides
	checked checkedRecords
	Purged  atomic.Bool // some records may be only in segments
}

func New(streams *streams.Set) *Store {
	t := streams.Opts.Tuning
	return &Store{
		Set: streams, far: cmp.Or(t.Far, farSequences), few: cmp.Or(t.Few, FewSequences),
		ahead: cmp.Or(t.Ahead, segmentsAhead), Inline: cmp.Or(t.Inline, InlineBytes),
	}
}

// Start makes the store accept appends. It returns an error if a server with a replica of
// one of the streams is too old.
func (l *Store) Start(ctx context.Context) error {
	purged, err := l.Judge(ctx)
	if err != nil {
		return err
	}
	if purged {
		l.Purged.Store(true)
	}
	l.Metrics = l.Opts.Metrics.Of(l.Durability())
	for p := range l.Committers {
		l.Committers[p] = &committer{log: l, partition: p, grouped: l.Opts.GroupCommit(), room: l.Opts.GroupMessages()}
		if p < l.Partitions() {
			l.Committers[p].Begins.Store(l.Begins(p))
		}
	}
	l.OnPartition = append(l.OnPartition, func(p int, begins uint64) { l.Committers[p].Begins.Store(begins) })
	return nil
}

// NoteFirst records a partition's first sequence. If that has risen, a purge, perhaps by
// another node, may have left some records only in segments.
func (l *Store) NoteFirst(p int, first uint64) {
	if first > max(l.Committers[p].Begins.Swap(first), 1) {
		l.Purged.Store(true)
	}
}

// Open creates the streams if needed, and returns a store without followers and without
// sealing.
func Open(ctx context.Context, nc *nats.Conn, o link.Options) (_ *Store, err error) {
	conn, err := link.New(ctx, nc, o)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			conn.Close()
		}
	}()
	set, err := streams.Open(ctx, conn)
	if err != nil {
		return nil, err
	}
	records := New(set)
	if err := records.Start(ctx); err != nil {
		return nil, err
	}
	conn.WatchConnection()
	return records, nil
}
