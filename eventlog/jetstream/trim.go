package jetstream

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

// Trim implements eventlog.Archive. The session's last segment always stays.
// Large payloads stay until the session is erased: another record may name them.
func (l *Log) Trim(ctx context.Context, session string, upTo uint64) (floor uint64, err error) {
	if ctx, err = l.frees(ctx); err != nil {
		return 0, err
	}
	floor, gone, err := l.trimmable(ctx, session, upTo)
	if err != nil || len(gone) == 0 {
		return floor, err
	}
	p := Partition(session, l.opts.Partitions)
	// The floor first: whoever misses a segment then learns why.
	mark := &nats.Msg{Subject: floorSubject(session, p), Data: strconv.AppendUint(nil, floor, 10), Header: nats.Header{}}
	if _, err := l.publish(ctx, []*nats.Msg{mark}); err != nil {
		return floor, fmt.Errorf("jetstream: trim: %w", err)
	}
	for _, seq := range gone {
		if err := l.remove(ctx, segmentStream(p), seq); err != nil {
			return floor, err
		}
	}
	return floor, nil
}

// Trimmable implements eventlog.Archive.
func (l *Log) Trimmable(ctx context.Context, session string, upTo uint64) (floor uint64, some bool, err error) {
	floor, gone, err := l.trimmable(ctx, session, upTo)
	return floor, len(gone) > 0, err
}

// trimmable returns the segments that Trim would remove.
func (l *Log) trimmable(ctx context.Context, session string, upTo uint64) (floor uint64, gone []uint64, err error) {
	stream, subject, err := l.place(session)
	if err != nil {
		return 0, nil, err
	}
	p := Partition(session, l.opts.Partitions)
	if floor, err = l.floor(ctx, session); err != nil {
		return 0, nil, err
	}
	begins, err := l.firstFrom(ctx, stream, subject, 1)
	if err != nil {
		return floor, nil, err
	}
	if begins > 0 { // what is in the log stays
		upTo = min(upTo, begins-1)
	}
	refs, _, err := l.segmentsBehind(ctx, session, 0, l.lastSegment)
	if err != nil || len(refs) == 0 {
		return floor, nil, err
	}
	// The oldest go first, and the server knows how many are left.
	left, err := l.count(ctx, segmentStream(p), segmentSubject(session, p))
	if err != nil {
		return floor, nil, err
	}
	refs = refs[len(refs)-int(min(left, uint64(len(refs)))):]
	for _, ref := range refs[:max(len(refs)-1, 0)] {
		if ref.last > upTo {
			break
		}
		gone, floor = append(gone, ref.at), ref.last
	}
	return floor, gone, nil
}

// Size implements eventlog.Archive.
func (l *Log) Size(ctx context.Context) (uint64, error) {
	size := uint64(0)
	for p := range l.opts.Partitions {
		for _, name := range []string{streamName(p), segmentStream(p)} {
			s, err := l.findStream(ctx, name)
			if err != nil {
				return 0, err
			}
			size += s.CachedInfo().State.Bytes
		}
	}
	return size, nil
}

// OldestSegment implements eventlog.Archive.
func (l *Log) OldestSegment(ctx context.Context, session string) (time.Time, error) {
	if _, _, err := l.place(session); err != nil {
		return time.Time{}, err
	}
	p := Partition(session, l.opts.Partitions)
	return l.oldestSegment(ctx, p, segmentSubject(session, p))
}

// oldestSegment is when the oldest segment of a partition's subjects was written;
// zero: there is none.
func (l *Log) oldestSegment(ctx context.Context, p int, subjects string) (time.Time, error) {
	messages, err := l.getBatch(ctx, segmentStream(p), subjects, 1, 1, pageBytes)
	if err != nil || len(messages) == 0 {
		return time.Time{}, err
	}
	at, err := time.Parse(time.RFC3339Nano, first(messages[0].Header, headerTimeStamp))
	if err != nil {
		return at, fmt.Errorf("%w: segment without a time: %w", errDamaged, err)
	}
	return at, nil
}

// Droppable implements eventlog.Archive. A segment that is looked at costs the
// server a block of its file, several MiB: to ask each session's would take as
// long as to read the whole stream, and again at each pass.
func (l *Log) Droppable(ctx context.Context, t time.Time) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for p := range l.opts.Partitions {
			all := segmentSubjects + strconv.Itoa(p) + ".*"
			oldest, err := l.oldestSegment(ctx, p, all)
			if err == nil && (oldest.IsZero() || !oldest.Before(t)) {
				continue
			}
			var segments map[string]uint64
			if err == nil {
				segments, err = l.subjectsOf(ctx, segmentStream(p), all)
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
