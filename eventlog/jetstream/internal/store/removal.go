package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// RemoveAll removes all messages of a session, those of its log last and its tombstone after
// them, and returns how many records there were. Errors: ErrSessionNotFound if another
// node has ended the erasure.
func (l *Store) RemoveAll(ctx context.Context, session string, e *Erasing) (records int, err error) {
	for {
		n, err := l.removeParts(ctx, session, e)
		records += n
		if err != nil {
			return records, err
		}
		for i := range e.Parts {
			if err := l.position(ctx, &e.Parts[i]); err != nil {
				return records, err
			}
		}
		now, err := l.Change(ctx, session, func(now *Erasing) bool {
			if now.Round != e.Round || now.Removed {
				return false
			}
			now.Parts, now.Removed = e.Parts, true
			return true
		})
		if err != nil {
			return records, err
		}
		if now.At == 0 {
			return records, eventlog.ErrSessionNotFound
		}
		*e = *now
		if e.Removed {
			return records, nil
		}
	}
}

func (l *Store) removeParts(ctx context.Context, session string, e *Erasing) (records int, err error) {
	log := layout.LogStream(l.PartitionOf(session))
	for _, p := range e.Parts {
		if p.Taken {
			if err := l.Remove(ctx, p.Stream, p.UpTo); err != nil {
				return 0, err
			}
			continue
		}
		if p.Stream == log || !l.Owns(p.Stream) || e.Tombstone > 0 && !p.Scrub && p.Stream != layout.BlobStream {
			continue
		}
		if _, err := l.EraseSubject(ctx, p.Stream, p.Subject, p.UpTo); err != nil {
			return 0, err
		}
	}
	for _, p := range e.Parts {
		if p.Taken || p.Stream != log {
			continue
		}
		upTo := p.UpTo
		if e.Tombstone > 0 {
			upTo = min(upTo, e.Tombstone-1)
		}
		n, err := l.EraseSubject(ctx, p.Stream, p.Subject, upTo)
		records += n
		if err != nil {
			return records, err
		}
	}
	if e.Tombstone == 0 {
		return records, nil
	}
	segments, sealed := layout.SegmentStream(l.PartitionOf(session)), uint64(0)
	err = l.eraseSealed(ctx, session, e.Tombstone, func(_ string, at uint64) error {
		sealed = max(sealed, at)
		return l.Overwrite(ctx, segments, at)
	})
	if err != nil {
		return records, err
	}
	for i := range e.Parts {
		if p := &e.Parts[i]; p.Stream == segments && !p.Taken {
			p.UpTo = max(p.UpTo, sealed)
		}
	}
	// While the tombstone exists, no node creates the session again.
	stands, err := l.MessageAt(ctx, log, e.Tombstone)
	if err := l.Certain(ctx, log); err != nil { // the answers so far may lack the last records
		return records, err
	}
	if errors.Is(err, link.ErrNoMessage) {
		return records, nil
	}
	if err == nil && l.Opts.Forget != nil && wire.IsErased(stands.Header) {
		err = l.Opts.Forget(ctx, session)
	}
	if err == nil {
		err = l.Overwrite(ctx, log, e.Tombstone)
	}
	return records, err
}

// OverwriteAll has the removed messages overwritten, and returns what is left.
func (l *Store) OverwriteAll(ctx context.Context, session string, e *Erasing) (left remains, err error) {
	if e.Tombstone > 0 {
		late, err := l.EraseLate(ctx, session, e)
		if err != nil {
			return left, err
		}
		if late { // they must be overwritten, too
			now, err := l.ErasingOf(ctx, session)
			if err != nil {
				return left, err
			}
			*e = *now
		}
	}
	if l.Opts.Server == nil {
		return l.leftOutside(ctx, e)
	}
	servers, err := l.serversWith(ctx, e)
	if err != nil {
		return left, err
	}
	said, err := l.reports(ctx, session, servers)
	if err != nil {
		return left, err
	}
	own := l.Opts.Server.Name()
	if said[own] != e.Round { // otherwise it waits for other servers, however long they are down
		if left, err = l.scrub(ctx, e); err != nil || left.Some() {
			return left, err
		}
		if err := l.AwaitRemoved(ctx, e.streams()...); err != nil {
			return left, err
		}
		if slices.Contains(servers, own) {
			if err := l.Report(ctx, session, e); err != nil {
				return left, err
			}
			said[own] = e.Round
		}
	}
	var missing []string
	for _, name := range servers {
		if said[name] != e.Round {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return waiting("these servers, which have yet to overwrite what is in their files and to say so: %s", strings.Join(missing, ", ")), nil
	}
	return left, nil
}

// NeverKnows reports whether later answers can't add to an erasure's first one: one
// server has the log, and it is not this process's.
func (l *Store) NeverKnows() bool { return l.Opts.Server == nil && l.Opts.Replicas == 1 }

// leftOutside returns what may be left on servers whose files no node can reach.
func (l *Store) leftOutside(ctx context.Context, e *Erasing) (left remains, err error) {
	servers, err := l.serversWith(ctx, e)
	if err != nil {
		return left, err
	}
	if len(servers) > 1 {
		return remains{text: fmt.Sprintf("entries in the Raft logs of the NATS servers %s, which drop them when they next compact; "+
			"helixd can't look: their operator searches the files for the session's subjects", strings.Join(servers, ", "))}, nil
	}
	for _, p := range e.Parts {
		if p.Left {
			return remains{text: fmt.Sprintf("records that retention removed before, in a block of stream %s: the NATS server keeps their bytes until it "+
				"removes or compacts the block; helixd can't look: its operator searches the files for the session's subjects", p.Stream)}, nil
		}
	}
	return left, nil
}
