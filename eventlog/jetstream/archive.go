package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
)

// A session's sealed segments are messages on helix.seg.<p>.<S> in stream
// HELIX_SEG_<p>. They hold the session's records from the first one on, or
// from where retention has left them, without a gap.

// segmentPage is how many segments one request reads.
const segmentPage = 64

// lastSegment returns the session's last segment and its place, or nil. It
// asks the leader.
func (l *Log) lastSegment(ctx context.Context, session string) (*segment, uint64, error) {
	p := Partition(session, l.opts.Partitions)
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
	s, err := unpack(m.data)
	return s, m.sequence, err
}

// readSegments hands the sealed records behind from to take, while it wants
// them, and asks for about as many as reach up to to. It hands out none if the first
// one that there is does not follow from.
func (l *Log) readSegments(ctx context.Context, session string, from, to uint64, take func(stored) bool) error {
	p := Partition(session, l.opts.Partitions)
	at, err := l.firstSegment(ctx, session, from)
	if err != nil || at == 0 {
		return err
	}
	for {
		enough := int(min((to-min(from, to))/segmentRecords+2, segmentPage))
		messages, err := l.getBatch(ctx, segmentStream(p), segmentSubject(session, p), at, enough, pageBytes)
		if err != nil || len(messages) == 0 {
			return err
		}
		for _, m := range messages {
			s, err := unpack(m.Data)
			if err != nil {
				return err
			}
			if s.last() <= from {
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
		if at, err = sequenceOf(messages[len(messages)-1]); err != nil {
			return err
		}
		at++
	}
}

// firstSegment returns the place from which on the segments with records
// behind from are, 0 if there are none.
func (l *Log) firstSegment(ctx context.Context, session string, from uint64) (uint64, error) {
	if from == 0 {
		return 1, nil
	}
	s, at, err := l.lastSegment(ctx, session)
	for {
		if err != nil || s == nil || s.last() <= from {
			return 0, err
		}
		ref, found := s.find(from, at)
		if ref.at > at || ref.at == at && !found {
			return 0, fmt.Errorf("%w: a segment names itself or a later one", errDamaged)
		}
		if found {
			return ref.at, nil
		}
		var m message
		m, err = l.messageAt(ctx, segmentStream(Partition(session, l.opts.Partitions)), ref.at)
		if errors.Is(err, errNoMessage) {
			return 1, nil // retention has removed it
		}
		if err == nil {
			at = ref.at
			s, err = unpack(m.data)
		}
	}
}

// floor returns the sequence up to which retention has removed the session's
// records, 0 if it has removed none.
func (l *Log) floor(ctx context.Context, session string) (uint64, error) {
	p := Partition(session, l.opts.Partitions)
	m, err := l.lastMessage(ctx, segmentStream(p), floorSubject(session, p))
	if errors.Is(err, errNoMessage) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(string(m.data), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: floor of a session: %w", errDamaged, err)
	}
	return n, nil
}
