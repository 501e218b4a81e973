package jetstream

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/helixd/helixd/eventlog/internal/hold"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// store appends and reads the records of sessions.
type store struct {
	*streamSet
	// appended takes each acknowledged append; nil: nothing does.
	appended func(session string, expected, last uint64, records []wire.Stored)
	// deliver hands an append to this node's followers of the session, and returns how many
	// subscriptions they share; nil: nobody follows.
	deliver func(a *pendingAppend, last uint64, now time.Time) (subscriptions int)
	// committers store appends, one for each partition that there can be.
	committers [layout.MaxPartitions]*committer
	metrics    *logMetrics

	far     uint64 // farSequences
	few     uint64 // fewSequences
	ahead   int    // segmentsAhead
	inline  int    // inlineBytes
	holds   hold.Holds
	node    string        // this log among all that are open on the deployment
	held    atomic.Uint64 // how often this log has held a session
	beside  besides
	checked checkedRecords
	purged  atomic.Bool // some records may have left the log for the segments
}

func newStore(streams *streamSet) *store {
	return &store{streamSet: streams, far: farSequences, few: fewSequences, ahead: segmentsAhead, inline: inlineBytes}
}

// start has the store take appends. Errors: a server is too old that keeps one of the streams.
func (l *store) start(ctx context.Context) error {
	purged, err := l.judge(ctx)
	if err != nil {
		return err
	}
	if purged {
		l.purged.Store(true)
	}
	l.metrics = l.opts.Metrics.of(l.durability)
	for p := range l.committers {
		l.committers[p] = &committer{log: l, grouped: l.opts.groupCommit(), room: l.opts.groupMessages()}
		if p < l.Partitions() {
			l.committers[p].begins.Store(l.begins(p))
		}
	}
	l.onPartition = append(l.onPartition, func(p int, begins uint64) { l.committers[p].begins.Store(begins) })
	return nil
}
