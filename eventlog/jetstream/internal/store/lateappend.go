package store

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// An append that creates a session may be late, see wire.HeaderSince: the next reader of
// the head removes it. A record that is stored after it would hide it. So a node that
// does not know the record which an append is to follow checks it first.

// mostChecked is how many sessions checkedRecords keeps.
const mostChecked = 1 << 14

// checkedRecords keeps a record of each session that is known not to be of a late append.
// That stays true, since sequences are never used again.
type checkedRecords struct {
	mu sync.Mutex
	of map[string]uint64
}

func (c *checkedRecords) add(session string, seq uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.of[session]; c.of == nil || !known && len(c.of) == mostChecked {
		c.of = map[string]uint64{}
	}
	c.of[session] = seq
}

func (c *checkedRecords) has(session string, seq uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[session] == seq
}

// checkExpected removes the record that an append is to follow if it is of a late append;
// the comparison then fails. Errors: *ConflictError if the record is a tombstone, after which
// nothing of the session exists; ErrUnavailable if that can't be found out.
func (l *Store) checkExpected(ctx context.Context, session string, expected uint64) error {
	if l.checked.has(session, expected) {
		return nil
	}
	stream, subject, err := l.Place(session)
	if err != nil {
		return err
	}
	m, err := l.GetAt(ctx, stream, expected)
	if errors.Is(err, link.ErrNoMessage) || err == nil && m.Subject != subject { // the comparison will fail
		return nil
	}
	if err == nil && wire.IsErased(m.Header) {
		return &eventlog.ConflictError{}
	}
	if since := wire.First(m.Header, wire.HeaderSince); err == nil && since != "" {
		var taken bool
		if taken, err = l.blobsTaken(ctx, session, since, expected); err == nil && taken {
			if _, err = l.Head(ctx, session); err == nil || errors.Is(err, eventlog.ErrSessionNotFound) {
				return nil
			}
		}
		if err == nil && !l.Leads(ctx, layout.SegmentStream(l.PartitionOf(session))) {
			err = link.ErrStaleLeader
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", eventlog.ErrUnavailable, err)
	}
	l.checked.add(session, expected)
	return nil
}
