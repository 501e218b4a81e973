package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// A session's sealed segments are messages on helix.seg.<p>.<S> in stream HELIX_SEG_<p>.
// They have the session's records without a gap, from the first one on, or from the first
// one that retention has left.

// segmentsAhead is how many segments are requested at once: the server may load a block
// for each.
const segmentsAhead = 4

// LastSegment returns the session's last segment and its sequence in the stream, or nil.
// It asks the leader.
func (l *Store) LastSegment(ctx context.Context, session string) (*wire.Segment, uint64, error) {
	p := l.PartitionOf(session)
	get := l.LastMessage
	if l.Purged.Load() { // only then an unreadable segment may be the only copy
		get = l.LastReadable
	}
	m, err := get(ctx, layout.SegmentStream(p), layout.SegmentSubject(session, p))
	if errors.Is(err, link.ErrNoMessage) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	return l.Usable(ctx, session, m)
}

// Usable returns a segment, or nil if it is from before an erasure of its session.
func (l *Store) Usable(ctx context.Context, session string, m wire.Message) (*wire.Segment, uint64, error) {
	s, err := wire.Unpack(m.Data)
	if err != nil || s.Index > 0 {
		return s, m.Sequence, err
	}
	if late, err := l.outlived(ctx, session, m, s.Last()); err != nil || late {
		return nil, 0, err
	}
	return s, m.Sequence, nil
}

// AnyLastSegment is LastSegment from any replica. If the replica lags, more has to be
// read from the log: it may even have a segment that an erasure has removed.
func (l *Store) AnyLastSegment(ctx context.Context, session string) (*wire.Segment, uint64, error) {
	p := l.PartitionOf(session)
	m, err := l.DirectGet(ctx, layout.SegmentStream(p), map[string]any{"last_by_subj": layout.SegmentSubject(session, p)})
	if errors.Is(err, link.ErrNoMessage) && !l.Purged.Load() {
		return nil, 0, nil
	}
	if err != nil {
		return l.LastSegment(ctx, session)
	}
	s, at, err := l.Usable(ctx, session, m)
	if err != nil || s == nil || s.Index == 0 || l.Opts.Replicas <= 1 { // Usable has checked the first segment
		return s, at, err
	}
	if tombstone, err := l.lastTombstone(ctx, session); err != nil || s.Last() <= tombstone {
		return nil, 0, err
	}
	return s, at, nil
}

// ReadSegments passes the sealed records after from to take until that returns false. It
// reads only segments that are needed up to to. If the first existing segment does not
// follow from, it passes none.
func (l *Store) ReadSegments(ctx context.Context, session string, from, to uint64, take func(wire.Stored) bool) error {
	refs, end, err := l.SegmentsBehind(ctx, session, from, l.AnyLastSegment)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(refs, func(r wire.SegmentRef) bool { return r.Last >= to }); i >= 0 {
		refs = refs[:i+1]
	}
	for some := range slices.Chunk(refs, l.ahead) {
		segments, err := l.segmentsAt(ctx, session, some, end)
		if err != nil {
			return err
		}
		for _, s := range segments {
			if s == nil { // retention has removed it
				continue
			}
			if s.Previous > from {
				return nil // a gap; the caller notices that records are missing
			}
			for _, r := range s.Records {
				if r.Sequence <= from {
					continue
				}
				if !take(r) {
					return link.ErrStopped
				}
				from = r.Sequence
			}
		}
	}
	return nil
}

// SegmentsBehind returns the places of the session's segments that have records after
// from, oldest first, and the last segment of all, which it gets from last. Some of them
// may have been removed by retention.
func (l *Store) SegmentsBehind(
	ctx context.Context, session string, from uint64, last func(context.Context, string) (*wire.Segment, uint64, error),
) (refs []wire.SegmentRef, end *wire.Segment, err error) {
	s, at, err := last(ctx, session)
	end = s
	for err == nil && s != nil && s.Last() > from {
		refs = slices.Concat(s.Directory, []wire.SegmentRef{{At: at, Last: s.Last()}}, refs)
		earlier := s.Earlier
		if earlier.Last <= from {
			break
		}
		if earlier.At >= at {
			return nil, nil, fmt.Errorf("%w: a segment names itself or a later one", wire.ErrDamaged)
		}
		at = earlier.At
		s, err = l.segmentAt(ctx, session, at)
	}
	if err != nil {
		return nil, nil, err
	}
	i := slices.IndexFunc(refs, func(r wire.SegmentRef) bool { return r.Last > from })
	return refs[max(i, 0):], end, nil
}

// segmentAt returns the session's segment at a sequence of the stream, nil if there is
// none.
func (l *Store) segmentAt(ctx context.Context, session string, at uint64) (*wire.Segment, error) {
	p := l.PartitionOf(session)
	m, err := l.GetAt(ctx, layout.SegmentStream(p), at)
	if errors.Is(err, link.ErrNoMessage) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if m.Subject != layout.SegmentSubject(session, p) {
		return nil, fmt.Errorf("%w: message %d is no segment of the session", wire.ErrDamaged, at)
	}
	return wire.Unpack(m.Data)
}

// segmentsAt is segmentAt for several segments, which it requests together, except the
// one that the caller already has.
func (l *Store) segmentsAt(ctx context.Context, session string, refs []wire.SegmentRef, atHand *wire.Segment) ([]*wire.Segment, error) {
	segments, errs := make([]*wire.Segment, len(refs)), make([]error, len(refs))
	var wg sync.WaitGroup
	for i, ref := range refs {
		if ref.Last == atHand.Last() {
			segments[i] = atHand
			continue
		}
		wg.Go(func() { segments[i], errs[i] = l.segmentAt(ctx, session, ref.At) })
	}
	wg.Wait()
	return segments, errors.Join(errs...)
}

// Floor returns the sequence up to which retention has removed the session's
// records, 0 if it has removed none.
func (l *Store) Floor(ctx context.Context, session string) (uint64, error) {
	n, _, err := l.FloorAt(ctx, session)
	return n, err
}

// FloorAt is Floor, with the sequence of the message that has it.
func (l *Store) FloorAt(ctx context.Context, session string) (floor, at uint64, err error) {
	p := l.PartitionOf(session)
	m, err := l.LastMessage(ctx, layout.SegmentStream(p), layout.FloorSubject(session, p))
	if errors.Is(err, link.ErrNoMessage) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	n, err := strconv.ParseUint(string(m.Data), 10, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("%w: floor of a session: %w", wire.ErrDamaged, err)
	}
	if wire.First(m.Header, wire.HeaderExpectedLast) == "0" {
		if late, err := l.outlived(ctx, session, m, n); err != nil || late {
			return 0, 0, err
		}
	}
	return n, m.Sequence, nil
}
