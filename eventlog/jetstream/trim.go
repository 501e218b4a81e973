package jetstream

import (
	"context"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
)

// Trim implements eventlog.Archive. The session's last segment always stays.
func (l *Log) Trim(ctx context.Context, session string, upTo uint64) (floor uint64, err error) {
	stream, subject, err := l.place(session)
	if err != nil {
		return 0, err
	}
	p := Partition(session, l.opts.Partitions)
	if floor, err = l.floor(ctx, session); err != nil {
		return 0, err
	}
	begins, err := l.firstFrom(ctx, stream, subject, 1)
	if err != nil {
		return floor, err
	}
	if begins > 0 { // what is in the log stays
		upTo = min(upTo, begins-1)
	}
	last, keep, err := l.lastSegment(ctx, session)
	if err != nil || last == nil {
		return floor, err
	}
	var gone []uint64
	for at := uint64(1); at < keep; {
		messages, err := l.getBatch(ctx, segmentStream(p), segmentSubject(session, p), at, segmentPage, pageBytes)
		if err != nil {
			return floor, err
		}
		if len(messages) == 0 {
			break
		}
		for _, m := range messages {
			seq, err := sequenceOf(m)
			if err != nil {
				return floor, err
			}
			s, err := unpack(m.Data)
			if err != nil {
				return floor, err
			}
			at = seq + 1
			if seq >= keep || s.last() > upTo {
				at = keep
				break
			}
			gone, floor = append(gone, seq), s.last()
		}
	}
	if len(gone) == 0 {
		return floor, nil
	}
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
