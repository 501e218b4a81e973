package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// A message that was sent before a session's erasure may be stored after it, if its
// sender or the network was slow. If it is compared with the session's last record, the
// comparison fails. If it is compared with "nothing", the comparison succeeds, and its
// sender may have died before it checks again. So a node that finds such a message
// compares it with the last tombstone that the session's mark names, which stays for an hour.

// lastTombstone returns the last tombstone of a session, 0 if none is known.
func (l *Store) lastTombstone(ctx context.Context, session string) (uint64, error) {
	e, _, err := l.mark(ctx, session)
	if err != nil {
		return 0, err
	}
	return e.Tombstone, nil
}

// outlived reports whether m, a segment or a floor of records up to last that was
// compared with "nothing", is of a session that was erased, and removes it then. While
// the tombstone exists, that is left to the erasure.
func (l *Store) outlived(ctx context.Context, session string, m wire.Message, last uint64) (bool, error) {
	tombstone, err := l.lastTombstone(ctx, session)
	if err != nil || tombstone < last {
		return false, err
	}
	if l.Opts.ReadOnly {
		return true, nil
	}
	stream, _, err := l.Place(session)
	if err != nil {
		return false, err
	}
	if _, err := l.MessageAt(ctx, stream, tombstone); !errors.Is(err, link.ErrNoMessage) {
		return true, err
	}
	return true, l.Wipe(ctx, session, layout.SegmentStream(l.PartitionOf(session)), m.Subject, m.Sequence)
}

// blobsTaken reports whether a session's last erasure has removed the blobs of the record
// at seq, which created its session. They were stored when the log had the messages up to
// since and there was no tombstone of the session. If the session had a tombstone after that and
// before the record, the erasure removes, or has removed, those that it found.
func (l *Store) blobsTaken(ctx context.Context, session, since string, seq uint64) (bool, error) {
	from, err := strconv.ParseUint(since, 10, 64)
	if err != nil {
		return false, fmt.Errorf("%w: header %s of message %d", wire.ErrDamaged, wire.HeaderSince, seq)
	}
	tombstone, err := l.lastTombstone(ctx, session)
	return err == nil && from < tombstone && tombstone < seq, err
}
