package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// An erasure removes the blobs that exist while its tombstone does, and it may be slow: the
// session may have been created again before it gets to one. So a record relies only on a
// blob that was stored when the last tombstone was gone:
//
//  - An append to a session stores its blobs after the record that it follows, which
//    wire.HeaderAfter names, while that is the head. Another append to that session may use them
//    while that record is in the log.
//  - An append that creates the session stores its blobs when there is no tombstone, and its records
//    name the log's last sequence before that, in wire.HeaderSince. If the session had a tombstone in
//    between, the append is late: it belongs to no session, and the next reader of the head
//    removes it. Its sender, if it still runs, appends again.

// storedBlob is a blob that was stored for an append.
type storedBlob struct {
	ref    wire.BlobRef
	prefix string   // of its parts' subjects: a growth may have moved the session since
	at     []uint64 // its parts
}

// AppendBlob makes sure that the session has a payload before an append that needs it.
func (l *Store) AppendBlob(ctx context.Context, a *PendingAppend, payload []byte) (wire.BlobRef, error) {
	ref := wire.RefOf(payload)
	for _, b := range a.blobs {
		if b.ref == ref {
			return ref, nil
		}
	}
	if a.Expected > 0 {
		after, err := l.BlobAfter(ctx, a.Session, ref)
		if err != nil && !errors.Is(err, link.ErrNoMessage) {
			return ref, err
		}
		if err == nil && after > 0 {
			if there, err := l.InLog(ctx, a.Session, after); err != nil || there {
				return ref, err
			}
		}
		if err := l.follows(ctx, a.Session, a.Expected); err != nil {
			return ref, err
		}
	} else if len(a.blobs) == 0 {
		var err error
		if a.since, err = l.free(ctx, a.Session); err != nil {
			return ref, err
		}
	}
	name, value := wire.HeaderAfter, a.Expected
	if a.Expected == 0 {
		name, value = wire.HeaderSince, a.since
	}
	prefix := l.BlobPrefix(a.Session)
	at, err := l.StoreBlob(ctx, a.Session, ref, payload, name, value)
	a.blobs = append(a.blobs, storedBlob{ref: ref, prefix: prefix, at: at})
	return ref, err
}

// follows returns a *ConflictError if an append can't succeed because the head is not the
// expected record. Otherwise the append would store blobs after a record of an erased
// session, and nothing would look for them: the erasure's mark, which stays for an hour,
// may have been gone when the append began.
func (l *Store) follows(ctx context.Context, session string, expected uint64) error {
	head, err := l.Head(ctx, session)
	if err != nil && !errors.Is(err, eventlog.ErrSessionNotFound) || head == expected {
		return err
	}
	return &eventlog.ConflictError{Head: head}
}

// free returns the log's last sequence at a moment after which a session that did not
// exist had no tombstone either. The error is a *ConflictError if the session or its tombstone
// exists.
func (l *Store) free(ctx context.Context, session string) (since uint64, err error) {
	stream, subject, err := l.Place(session)
	if err != nil {
		return 0, err
	}
	for range link.ReadableTries {
		info, err := l.StreamInfo(ctx, stream, subject)
		if err != nil {
			return 0, err
		}
		if info.State.Subjects[subject] == 0 { // the server counts them after it has read LastSeq
			return info.State.LastSeq, nil
		}
		if head, err := l.Head(ctx, session); err == nil {
			return 0, &eventlog.ConflictError{Head: head}
		} else if !errors.Is(err, eventlog.ErrSessionNotFound) {
			return 0, err
		}
		tombstone, err := l.TombstoneOf(ctx, session)
		if err == nil {
			return 0, &eventlog.ConflictError{Head: tombstone}
		} else if !errors.Is(err, eventlog.ErrSessionNotFound) {
			return 0, err
		}
	}
	return 0, fmt.Errorf("%w: others create and erase session %q", eventlog.ErrUnavailable, session)
}

// errBlobsTaken: an append that created its session was late, see wire.HeaderSince, and is removed.
var errBlobsTaken = fmt.Errorf("%w: the session was erased meanwhile", eventlog.ErrUnavailable)

// confirmBlobs returns errBlobsTaken if an erasure may have removed the blobs of an
// append that has created its session.
func (l *Store) confirmBlobs(ctx context.Context, a *PendingAppend, last uint64) error {
	if a.Expected > 0 || len(a.blobs) == 0 {
		return nil
	}
	taken, err := l.blobsTaken(ctx, a.Session, strconv.FormatUint(a.since, 10), last)
	if err == nil && taken {
		// Head removes a late record.
		if _, err = l.Head(ctx, a.Session); err == nil || errors.Is(err, eventlog.ErrSessionNotFound) {
			return errBlobsTaken
		}
	}
	if err == nil {
		// Only the last erasure is known. If it came after the append, it has erased the
		// append, or has replaced an erasure that removed its blobs and for which another
		// node has removed the append.
		var tombstone uint64
		if tombstone, err = l.lastTombstone(ctx, a.Session); err == nil && tombstone > last {
			err = errors.New("the session was erased meanwhile")
		}
	}
	if err == nil && !l.Leads(ctx, layout.SegmentStream(l.PartitionOf(a.Session))) {
		err = link.ErrStaleLeader
	}
	if err != nil {
		return fmt.Errorf("%w: %w", eventlog.ErrOutcomeUnknown, err)
	}
	return nil
}

// DropBlobs overwrites the blobs of an append that failed, unless other appends may use
// them: nothing of an erased session may come back. If the append may still create the
// session, its blobs are kept, see markLeftBlobs of package maintenance.
func (l *Store) DropBlobs(ctx context.Context, a *PendingAppend, why error) {
	if len(a.blobs) == 0 || a.Expected == 0 && errors.Is(why, eventlog.ErrOutcomeUnknown) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), link.LeaderPatience)
	defer cancel()
	if a.Expected > 0 {
		if there, err := l.Lives(ctx, a.Session, a.Expected); err != nil || there {
			return
		}
	}
	var parts []Part
	for _, b := range a.blobs {
		for i, at := range b.at {
			parts = append(parts, Single(layout.BlobStream, b.prefix+b.ref.Hash+"."+strconv.Itoa(i), at))
		}
		if a.Expected > 0 {
			parts = append(parts, l.partsAfter(ctx, a.Session, b.ref, a.Expected)...)
		}
	}
	slices.SortFunc(parts, func(a, b Part) int { return cmp.Compare(a.UpTo, b.UpTo) })
	// If this fails, the next erasure of the session removes them, or markLeftBlobs does.
	_ = l.WipeAll(ctx, a.Session, slices.Compact(parts))
}

// partsAfter returns the parts of a blob that were stored after a record, also those whose
// storing was not acknowledged, as far as the server can be asked.
func (l *Store) partsAfter(ctx context.Context, session string, ref wire.BlobRef, after uint64) (parts []Part) {
	subject, text := l.BlobPrefix(session)+ref.Hash+".*", strconv.FormatUint(after, 10)
	for at := uint64(0); ; {
		m, err := l.LeaderGet(ctx, layout.BlobStream, map[string]any{"seq": at + 1, "next_by_subj": subject})
		if err != nil {
			return parts
		}
		if at = m.Sequence; wire.First(m.Header, wire.HeaderAfter) == text {
			parts = append(parts, Single(layout.BlobStream, m.Subject, at))
		}
	}
}
