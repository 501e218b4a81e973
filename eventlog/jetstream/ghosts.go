package jetstream

import (
	"context"
	"errors"
	"fmt"
)

// dropGhosts removes segments that hold what the log has lost. Where a server
// syncs now and then only, a power loss can cut off the log's end and not the
// segments'; the log would then give the lost sequences again. Segments are
// written in the order of what they hold, so only the last ones can be ghosts.
func (l *Log) dropGhosts(ctx context.Context, p int) error {
	log, err := l.js.Stream(ctx, streamName(p))
	if err != nil {
		return fmt.Errorf("jetstream: stream %s: %w", streamName(p), err)
	}
	segments, err := l.js.Stream(ctx, segmentStream(p))
	if err != nil {
		return fmt.Errorf("jetstream: stream %s: %w", segmentStream(p), err)
	}
	end, state := log.CachedInfo().State, segments.CachedInfo().State
	if end.Msgs == 0 && end.LastSeq > 0 {
		return nil // it was purged
	}
	for at := state.LastSeq; at >= max(state.FirstSeq, 1); at-- {
		m, err := l.messageAt(ctx, segmentStream(p), at)
		if errors.Is(err, errNoMessage) {
			continue
		}
		if err != nil {
			return err
		}
		if m.at.Before(end.LastTime) {
			return nil // when it was written the log was longer, and still is
		}
		s, err := unpack(m.data)
		if err != nil { // a floor, or damage, which whoever reads it reports
			continue
		}
		if s.last() <= end.LastSeq {
			continue
		}
		if err := l.remove(ctx, segmentStream(p), at); err != nil {
			return err
		}
	}
	return nil
}
