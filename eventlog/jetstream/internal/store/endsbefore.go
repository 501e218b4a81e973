package store

import (
	"context"
	"errors"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// endsBefore reports whether a session certainly ends before a sequence. One answer is
// not enough, since it is unknown which server gave it: the leader that is asked a moment
// later may be another one, with more records.
func (l *Store) endsBefore(ctx context.Context, session string, seq uint64) bool {
	if l.Opts.Replicas <= 1 {
		return true
	}
	if eventlog.Sleep(ctx, link.NewsTime) != nil {
		return false
	}
	head, _, err := l.HeadPlace(ctx, session)
	if err != nil && !errors.Is(err, eventlog.ErrSessionNotFound) || head >= seq {
		return false
	}
	return l.Leads(ctx, layout.LogStream(l.PartitionOf(session)))
}
