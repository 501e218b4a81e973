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

// Store appends and reads the records of sessions.
type Store struct {
	*streams.Set
	// Appended takes each acknowledged append; nil: nothing does.
	Appended func(session string, expected, last uint64, records []wire.Stored)
	// Deliver hands an append to this node's followers of the session, and returns how many
	// subscriptions they share; nil: nobody follows.
	Deliver func(a *PendingAppend, last uint64, now time.Time) (subscriptions int)
	// Committers store appends, one for each partition that there can be.
	Committers [layout.MaxPartitions]*committer
	Metrics    *metrics.Log

	far     uint64 // farSequences
	few     uint64 // FewSequences
	ahead   int    // segmentsAhead
	Inline  int    // InlineBytes
	Holds   hold.Holds
	node    string        // this log among all that are open on the deployment
	held    atomic.Uint64 // how often this log has held a session
	beside  besides
	checked checkedRecords
	Purged  atomic.Bool // some records may have left the log for the segments
}

func New(streams *streams.Set) *Store {
	t := streams.Opts.Tuning
	return &Store{
		Set: streams, far: cmp.Or(t.Far, farSequences), few: cmp.Or(t.Few, FewSequences),
		ahead: cmp.Or(t.Ahead, segmentsAhead), Inline: cmp.Or(t.Inline, InlineBytes),
	}
}

// Start has the store take appends. Errors: a server is too old that keeps one of the streams.
func (l *Store) Start(ctx context.Context) error {
	purged, err := l.Judge(ctx)
	if err != nil {
		return err
	}
	if purged {
		l.Purged.Store(true)
	}
	l.Metrics = l.Opts.Metrics.Of(l.Durability)
	for p := range l.Committers {
		l.Committers[p] = &committer{log: l, grouped: l.Opts.GroupCommit(), room: l.Opts.GroupMessages()}
		if p < l.Partitions() {
			l.Committers[p].Begins.Store(l.Begins(p))
		}
	}
	l.OnPartition = append(l.OnPartition, func(p int, begins uint64) { l.Committers[p].Begins.Store(begins) })
	return nil
}

// Open makes the streams, and returns a store that nobody follows and nothing seals.
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
