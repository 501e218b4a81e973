package store

import (
	"context"
	"errors"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// TombstoneOf returns the sequence of the session's tombstone. Errors: ErrSessionNotFound if it
// has none.
func (l *Store) TombstoneOf(ctx context.Context, session string) (uint64, error) {
	stream, subject, err := l.Place(session)
	if err != nil {
		return 0, err
	}
	m, err := l.LastMessage(ctx, stream, subject)
	switch {
	case errors.Is(err, link.ErrNoMessage), err == nil && !wire.IsErased(m.Header):
		return 0, eventlog.ErrSessionNotFound
	case err != nil:
		return 0, err
	}
	return m.Sequence, nil
}

// stands reports whether a session's tombstone exists. While it does, no session of the id
// exists.
func (l *Store) stands(ctx context.Context, session string, tombstone uint64) (bool, error) {
	at, err := l.TombstoneOf(ctx, session)
	if errors.Is(err, eventlog.ErrSessionNotFound) {
		return false, nil
	}
	return err == nil && at == tombstone, err
}

// eraseSealed overwrites the segments and floors of a session that have or name records
// up to its tombstone, wherever in the stream they are: another node may seal until the tombstone
// is removed. Records after the tombstone are of a session that was created again. An
// unreadable message may be, too, so it is removed only while the tombstone exists. Errors:
// ErrUnavailable if the server that answered may not be the stream's leader, which may
// have more.
func (l *Store) eraseSealed(ctx context.Context, session string, tombstone uint64, by func(subject string, at uint64) error) error {
	p := l.PartitionOf(session)
	stream := layout.SegmentStream(p)
	for _, subject := range []string{layout.SegmentSubject(session, p), layout.FloorSubject(session, p)} {
		for at := uint64(0); ; {
			m, err := l.LeaderGet(ctx, stream, map[string]any{"seq": at + 1, "next_by_subj": subject})
			if errors.Is(err, link.ErrNoMessage) {
				break
			}
			if err != nil {
				return err
			}
			at = m.Sequence
			last, readable := wire.Reaches(m)
			if readable && last > tombstone {
				continue
			}
			if !readable {
				if stands, err := l.stands(ctx, session, tombstone); err != nil {
					return err
				} else if !stands {
					continue
				}
			}
			if err := by(subject, at); err != nil {
				return err
			}
		}
	}
	return l.Certain(ctx, stream)
}

// EraseLate removes segments and floors that were stored after an erasure had looked for
// them, for example by a sealer that died before it removed its segment. It reports
// whether there were any.
func (l *Store) EraseLate(ctx context.Context, session string, e *Erasing) (some bool, err error) {
	err = l.eraseSealed(ctx, session, e.Tombstone, func(subject string, at uint64) error {
		some = true
		return l.Wipe(ctx, session, layout.SegmentStream(l.PartitionOf(session)), subject, at)
	})
	return some, err
}
