package maintenance

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// trimTries is how often Trim is retried because another trim was quicker.
const trimTries = 10

// Trim implements [jetstream.Log.Trim].
func (l *Maintenance) Trim(ctx context.Context, session string, upTo uint64) (floor uint64, err error) {
	if ctx, err = l.Frees(ctx); err != nil {
		return 0, err
	}
	for range trimTries {
		t, err := l.trimmable(ctx, session, upTo)
		if err != nil || len(t.gone) == 0 {
			return t.floor, err
		}
		err = l.raiseFloor(ctx, session, t)
		if _, raced := errors.AsType[*eventlog.ConflictError](err); raced || errors.Is(err, link.ErrInFlight) {
			if _, err := l.Head(ctx, session); errors.Is(err, eventlog.ErrSessionNotFound) { // the session is being erased
				return t.floor, err
			}
			continue
		}
		if err != nil {
			return t.floor, fmt.Errorf("jetstream: trim: %w", err)
		}
		p := l.PartitionOf(session)
		// Nothing reads these again, not even an erasure: their bytes are overwritten
		// now.
		for _, seq := range t.gone {
			if err := l.Overwrite(ctx, layout.SegmentStream(p), seq); err != nil {
				return t.floor, err
			}
		}
		return t.floor, l.AwaitRemoved(ctx, layout.SegmentStream(p))
	}
	return 0, fmt.Errorf("jetstream: trim: %w: others trim session %q", eventlog.ErrUnavailable, session)
}

// trimming is the work of a trim.
type trimming struct {
	floor uint64
	// before is the sequence of the present floor's message, or 0.
	before uint64
	gone   []uint64 // the sequences of the segments to remove
	last   uint64   // the sequence of the last segment, which stays
}

// raiseFloor stores a floor before its segments are removed, so that a reader that misses
// one finds out why. If the session was erased meanwhile, it removes the floor. The error
// is a *ConflictError if the floor has changed since it was read.
func (l *Maintenance) raiseFloor(ctx context.Context, session string, t trimming) error {
	p := l.PartitionOf(session)
	mark := &nats.Msg{Subject: layout.FloorSubject(session, p), Data: strconv.AppendUint(nil, t.floor, 10), Header: nats.Header{
		wire.HeaderExpectedLast: {strconv.FormatUint(t.before, 10)},
	}}
	at, err := l.Publish(ctx, []*nats.Msg{mark})
	if err != nil {
		return err
	}
	_, err = l.TombstoneOf(ctx, session)
	switch {
	case errors.Is(err, eventlog.ErrSessionNotFound):
		if _, err = l.MessageAt(ctx, layout.SegmentStream(p), t.last); !errors.Is(err, link.ErrNoMessage) {
			return err
		}
	case err != nil:
		return err
	}
	return errors.Join(eventlog.ErrSessionNotFound, l.SecureDelete(ctx, layout.SegmentStream(p), at))
}

// Trimmable implements eventlog.Archive.
func (l *Maintenance) Trimmable(ctx context.Context, session string, upTo uint64) (floor uint64, some bool, err error) {
	t, err := l.trimmable(ctx, session, upTo)
	return t.floor, len(t.gone) > 0, err
}

// trimmable returns what Trim would do.
func (l *Maintenance) trimmable(ctx context.Context, session string, upTo uint64) (t trimming, err error) {
	stream, subject, err := l.Place(session)
	if err != nil {
		return t, err
	}
	p := l.PartitionOf(session)
	if t.floor, t.before, err = l.FloorAt(ctx, session); err != nil {
		return t, err
	}
	upTo = max(upTo, t.floor) // an interrupted trim may have left segments below the floor
	refs, _, err := l.SegmentsBehind(ctx, session, 0, l.LastSegment)
	if err != nil || len(refs) == 0 {
		return t, err
	}
	// After the segments: the log may have had no record before they were appended and
	// sealed.
	begins, err := l.FirstFrom(ctx, stream, subject, 1)
	if err != nil {
		return t, err
	}
	if begins > 0 { // records that the log still has are kept
		upTo = min(upTo, begins-1)
	}
	t.last = refs[len(refs)-1].At
	// The oldest are removed first, and the server counts those that are left.
	left, err := l.Count(ctx, layout.SegmentStream(p), layout.SegmentSubject(session, p))
	if err != nil {
		return t, err
	}
	refs = refs[len(refs)-int(min(left, uint64(len(refs)))):]
	for _, ref := range refs[:max(len(refs)-1, 0)] {
		if ref.Last > upTo {
			break
		}
		if ref.At == 0 { // removed before the session was restored; segments sealed meanwhile were counted
			continue
		}
		t.gone, t.floor = append(t.gone, ref.At), max(t.floor, ref.Last)
	}
	return t, nil
}

// Size implements eventlog.Archive.
func (l *Maintenance) Size(ctx context.Context) (uint64, error) {
	size := uint64(0)
	for p := range l.Partitions() {
		for _, name := range []string{layout.LogStream(p), layout.SegmentStream(p)} {
			s, err := l.FindStream(ctx, name)
			if err != nil {
				return 0, err
			}
			size += s.CachedInfo().State.Bytes
		}
	}
	return size, nil
}

// OldestSegment implements eventlog.Archive.
func (l *Maintenance) OldestSegment(ctx context.Context, session string) (time.Time, error) {
	if _, _, err := l.Place(session); err != nil {
		return time.Time{}, err
	}
	p := l.PartitionOf(session)
	return l.oldestSegment(ctx, p, layout.SegmentSubject(session, p))
}

// oldestSegment returns when the oldest segment of a partition's subjects was written;
// zero: there is none.
func (l *Maintenance) oldestSegment(ctx context.Context, p int, subjects string) (time.Time, error) {
	messages, err := l.GetBatch(ctx, layout.SegmentStream(p), subjects, 1, 1)
	if err != nil || len(messages) == 0 {
		return time.Time{}, err
	}
	at, err := time.Parse(time.RFC3339Nano, wire.First(messages[0].Header, wire.HeaderTimeStamp))
	if err != nil {
		return at, fmt.Errorf("%w: segment without a time: %w", wire.ErrDamaged, err)
	}
	return at, nil
}

// Droppable implements eventlog.Archive. Reading a segment costs the server a block of
// its file, several MiB: reading one of each session would take as long as reading the
// whole stream, at each pass.
func (l *Maintenance) Droppable(ctx context.Context, t time.Time) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for p := range l.Partitions() {
			all := layout.SegmentSubjects + strconv.Itoa(p) + ".*"
			oldest, err := l.oldestSegment(ctx, p, all)
			if err == nil && (oldest.IsZero() || !oldest.Before(t)) {
				continue
			}
			var segments map[string]uint64
			if err == nil {
				segments, err = l.SubjectsOf(ctx, layout.SegmentStream(p), all)
			}
			if err != nil {
				yield("", err)
				return
			}
			for session, n := range segments {
				if n > 1 && !yield(session, nil) {
					return
				}
			}
		}
	}
}
