package jetstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
)

// A session's sealed segments are messages on helix.seg.<p>.<S> in stream
// HELIX_SEG_<p>. They hold the session's records from the first one on, or
// from where retention has left them, without a gap.

// segmentsAhead is how many segments are asked for at once: the server may load a
// block for each.
const segmentsAhead = 4

// lastSegment returns the session's last segment and its place, or nil. It
// asks the leader.
func (l *Log) lastSegment(ctx context.Context, session string) (*segment, uint64, error) {
	p := l.partitionOf(session)
	get := l.lastMessage
	if l.purged.Load() { // only then a segment that can't be read is all that there is
		get = l.lastReadable
	}
	m, err := get(ctx, segmentStream(p), segmentSubject(session, p))
	if errors.Is(err, errNoMessage) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	return l.usable(ctx, session, m)
}

// usable returns a segment, nil if it outlived its session.
func (l *Log) usable(ctx context.Context, session string, m message) (*segment, uint64, error) {
	s, err := unpack(m.data)
	if err != nil || s.index > 0 {
		return s, m.sequence, err
	}
	if late, err := l.outlived(ctx, session, m, s.last()); err != nil || late {
		return nil, 0, err
	}
	return s, m.sequence, nil
}

// anyLastSegment is lastSegment as any replica has it. One that lags leaves more
// to be read from the log.
func (l *Log) anyLastSegment(ctx context.Context, session string) (*segment, uint64, error) {
	p := l.partitionOf(session)
	m, err := l.directGet(ctx, segmentStream(p), map[string]any{"last_by_subj": segmentSubject(session, p)})
	if errors.Is(err, errNoMessage) && !l.purged.Load() {
		return nil, 0, nil
	}
	if err != nil {
		return l.lastSegment(ctx, session)
	}
	return l.usable(ctx, session, m)
}

// readSegments hands the sealed records behind from to take, while it wants
// them, from no more segments than reach up to to. It hands out none if the
// first one that there is does not follow from.
func (l *Log) readSegments(ctx context.Context, session string, from, to uint64, take func(stored) bool) error {
	refs, end, err := l.segmentsBehind(ctx, session, from, l.anyLastSegment)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(refs, func(r segmentRef) bool { return r.last >= to }); i >= 0 {
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
			if s.previous > from {
				return nil // a gap; the caller sees that it is not done
			}
			for _, r := range s.records {
				if r.Sequence <= from {
					continue
				}
				if !take(r) {
					return errStopped
				}
				from = r.Sequence
			}
		}
	}
	return nil
}

// segmentsBehind tells where the session's segments with records behind from
// are, oldest first, and which is the last of all, as last has it. Those that
// retention has removed may be among them.
func (l *Log) segmentsBehind(
	ctx context.Context, session string, from uint64, last func(context.Context, string) (*segment, uint64, error),
) (refs []segmentRef, end *segment, err error) {
	s, at, err := last(ctx, session)
	end = s
	for err == nil && s != nil && s.last() > from {
		refs = slices.Concat(s.directory, []segmentRef{{at: at, last: s.last()}}, refs)
		earlier := s.earlier
		if earlier.last <= from {
			break
		}
		if earlier.at >= at {
			return nil, nil, fmt.Errorf("%w: a segment names itself or a later one", errDamaged)
		}
		at = earlier.at
		s, err = l.segmentAt(ctx, session, at)
	}
	if err != nil {
		return nil, nil, err
	}
	i := slices.IndexFunc(refs, func(r segmentRef) bool { return r.last > from })
	return refs[max(i, 0):], end, nil
}

// segmentAt returns the session's segment at a place, nil if there is none.
func (l *Log) segmentAt(ctx context.Context, session string, at uint64) (*segment, error) {
	p := l.partitionOf(session)
	m, err := l.getAt(ctx, segmentStream(p), at)
	if errors.Is(err, errNoMessage) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if m.subject != segmentSubject(session, p) {
		return nil, fmt.Errorf("%w: message %d is no segment of the session", errDamaged, at)
	}
	return unpack(m.data)
}

// segmentsAt is segmentAt of several, which it asks for together, but for the one
// that is at hand.
func (l *Log) segmentsAt(ctx context.Context, session string, refs []segmentRef, atHand *segment) ([]*segment, error) {
	segments, errs := make([]*segment, len(refs)), make([]error, len(refs))
	var wg sync.WaitGroup
	for i, ref := range refs {
		if ref.last == atHand.last() {
			segments[i] = atHand
			continue
		}
		wg.Go(func() { segments[i], errs[i] = l.segmentAt(ctx, session, ref.at) })
	}
	wg.Wait()
	return segments, errors.Join(errs...)
}

// floor returns the sequence up to which retention has removed the session's
// records, 0 if it has removed none.
func (l *Log) floor(ctx context.Context, session string) (uint64, error) {
	n, _, err := l.floorAt(ctx, session)
	return n, err
}

// floorAt is floor, and the sequence of the message that has it.
func (l *Log) floorAt(ctx context.Context, session string) (floor, at uint64, err error) {
	p := l.partitionOf(session)
	m, err := l.lastMessage(ctx, segmentStream(p), floorSubject(session, p))
	if errors.Is(err, errNoMessage) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	n, err := strconv.ParseUint(string(m.data), 10, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("%w: floor of a session: %w", errDamaged, err)
	}
	if first(m.header, headerExpectedLast) == "0" {
		if late, err := l.outlived(ctx, session, m, n); err != nil || late {
			return 0, 0, err
		}
	}
	return n, m.sequence, nil
}
