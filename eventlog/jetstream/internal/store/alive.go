package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// InLog reports whether the log has the record at seq, and the session is not being
// erased. It checks for the tombstone first, since an erasure removes that last.
func (l *Store) InLog(ctx context.Context, session string, seq uint64) (bool, error) {
	stream, subject, err := l.Place(session)
	if err != nil {
		return false, err
	}
	m, err := l.LastMessage(ctx, stream, subject)
	if err == nil && !wire.IsErased(m.Header) {
		if m, err = l.MessageAt(ctx, stream, seq); err == nil {
			return m.Subject == subject, nil
		}
	}
	if errors.Is(err, link.ErrNoMessage) {
		err = nil
	}
	return false, err
}

// Lives reports whether the record at seq belongs to the present session of this id,
// which is not being erased. After a purge only a segment may have the record. Errors:
// ErrUnavailable if a server that may lack the record, since it may lead no more, does not
// have it.
func (l *Store) Lives(ctx context.Context, session string, seq uint64) (bool, error) {
	there, err := l.isFound(ctx, session, seq)
	if err != nil || there {
		return there, err
	}
	p := l.PartitionOf(session)
	return false, l.Certain(ctx, layout.LogStream(p), layout.SegmentStream(p))
}

// isFound is Lives as far as the servers that answer know.
func (l *Store) isFound(ctx context.Context, session string, seq uint64) (bool, error) {
	if there, err := l.InLog(ctx, session, seq); err != nil || there {
		return there, err
	}
	if _, _, err := l.HeadPlace(ctx, session); err != nil {
		if errors.Is(err, eventlog.ErrSessionNotFound) {
			err = nil
		}
		return false, err
	}
	refs, _, err := l.SegmentsBehind(ctx, session, seq-1, l.LastSegment)
	if err != nil || len(refs) == 0 {
		return false, err
	}
	s, err := l.segmentAt(ctx, session, refs[0].At)
	if err != nil {
		return false, err
	}
	if s == nil { // retention has removed it; an erased session's records are before its tombstone
		e, err := l.ErasingOf(ctx, session)
		return err == nil && seq > e.Tombstone, err
	}
	for _, r := range s.Records {
		if r.Sequence == seq {
			return true, nil
		}
	}
	return false, nil
}

// dropStray removes a record, or a tombstone, that was appended after a purged record and
// arrived after the session had been erased: there was no message left with which its
// comparison could have failed. Its place in the segments is in wire.HeaderSealed. It
// reports whether m, the session's last message, is such a record. A read-only log removes
// nothing.
//
// It also removes a record of an append that created a session, if an earlier erasure may
// have removed its blobs, see blobsTaken.
func (l *Store) dropStray(ctx context.Context, session, stream string, m wire.Message) (bool, error) {
	if since := wire.First(m.Header, wire.HeaderSince); since != "" {
		if taken, err := l.blobsTaken(ctx, session, since, m.Sequence); err != nil || !taken {
			return false, err
		}
		if l.Opts.ReadOnly {
			return true, nil
		}
		return true, l.Wipe(ctx, session, stream, m.Subject, m.Sequence)
	}
	text := wire.First(m.Header, wire.HeaderSealed)
	if text == "" {
		return false, nil
	}
	sealed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return false, fmt.Errorf("%w: header %s of message %d", wire.ErrDamaged, wire.HeaderSealed, m.Sequence)
	}
	p := l.PartitionOf(session)
	last, err := l.LastReadable(ctx, layout.SegmentStream(p), layout.SegmentSubject(session, p))
	if err == nil {
		s, _, err := l.Usable(ctx, session, last)
		if err != nil || s != nil && s.Last() >= sealed {
			return false, err
		}
	} else if !errors.Is(err, link.ErrNoMessage) {
		return false, err
	}
	if wire.IsErased(m.Header) { // a tombstone stays until its erasure, which removes segments first, is finished
		if e, err := l.ErasingOf(ctx, session); err != nil || e.Tombstone == m.Sequence {
			return false, err
		}
	}
	if err := l.Certain(ctx, layout.SegmentStream(p)); err != nil {
		return false, err
	}
	if l.Opts.ReadOnly {
		return true, nil
	}
	return true, l.Wipe(ctx, session, stream, m.Subject, m.Sequence)
}

// FollowPurged prepares a to follow a record that only a segment still has: JetStream
// then has no last message of the subject, which it calls 0.
func (a *PendingAppend) FollowPurged() {
	for _, m := range a.Messages {
		m.Header[wire.HeaderSealed] = []string{strconv.FormatUint(a.Expected, 10)}
	}
	first := a.Messages[0]
	first.Header[wire.HeaderPrevious] = first.Header[wire.HeaderExpectedLast]
	first.Header[wire.HeaderExpectedLast] = []string{"0"}
}

// behindPurged reports whether FollowPurged was called.
func (a *PendingAppend) behindPurged() bool { return a.Messages[0].Header[wire.HeaderPrevious] != nil }
