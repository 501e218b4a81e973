package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

const (
	// unknownSync is how often a server syncs its files by default.
	unknownSync = 2 * time.Minute
	// lateSync is by how much a sync may be late on a disk that is overloaded.
	lateSync = time.Minute
)

// errLogLost tells that the log lacks records that segments hold.
var errLogLost = errors.New("the log lacks records that were acknowledged")

// dropAllGhosts calls dropGhosts for each partition.
func (l *maintenance) dropAllGhosts(ctx context.Context) error {
	for p := range l.Partitions() {
		if err := l.dropGhosts(ctx, p, leaderPatience); err != nil {
			return err
		}
	}
	return nil
}

// dropGhosts calls dropGhostsOnce, and waits for up to patience for a log with replicas to end
// where the segments do: a server that was just elected, or one that was stopped and still
// takes itself for the leader, lacks what the others have acknowledged.
func (l *maintenance) dropGhosts(ctx context.Context, p int, patience time.Duration) error {
	began := time.Now()
	for {
		err := l.dropGhostsOnce(ctx, p)
		if !errors.Is(err, errLogLost) || l.opts.Replicas <= 1 || time.Since(began) > patience {
			return err
		}
		if err := l.rest(ctx, newsTime); err != nil {
			return err
		}
	}
}

// dropGhostsOnce removes segments that hold what the log has lost, and what marks of
// erasures say of it. Where a server syncs now and then only, a power loss can cut off
// the log's end and not the segments'; the log would then give the lost sequences
// again. Segments are written in the order of what they hold, so only the last ones
// can be ghosts.
// If more is missing than a power loss can take, they may be the only copy of it:
// then it removes none, and the log can't be opened.
func (l *maintenance) dropGhostsOnce(ctx context.Context, p int) error {
	// The segments first: what they hold then, the log held before.
	segments, err := l.findStream(ctx, layout.SegmentStream(p))
	if err != nil {
		return err
	}
	log, err := l.findStream(ctx, layout.LogStream(p))
	if err != nil {
		return err
	}
	end, state := log.CachedInfo().State, segments.CachedInfo().State
	if end.LastSeq > 0 && end.LastTime.IsZero() {
		return nil // it was restored, and nothing appended since
	}
	var ghosts []uint64
	var marks []wire.Message
	var oldest, newest eventlog.Record
	for at := state.LastSeq; at >= max(state.FirstSeq, 1); at-- {
		m, err := l.messageAt(ctx, layout.SegmentStream(p), at)
		if errors.Is(err, errNoMessage) {
			continue
		}
		if err != nil {
			return err
		}
		if m.At.Before(end.LastTime) {
			break // when it was written the log was longer, and still is
		}
		if strings.HasPrefix(m.Subject, layout.ErasedSubjects) {
			marks = append(marks, m)
			continue
		}
		s, err := wire.Unpack(m.Data)
		if err != nil { // a floor, or damage, which whoever reads it reports
			continue
		}
		if s.Last() <= end.LastSeq {
			continue
		}
		ghosts = append(ghosts, at)
		for _, r := range s.Records {
			if r.Sequence <= end.LastSeq {
				continue
			}
			if oldest.Sequence == 0 || r.Sequence < oldest.Sequence {
				oldest = r.Record
			}
			if r.Sequence > newest.Sequence {
				newest = r.Record
			}
		}
	}
	if lost := newest.Time.Sub(oldest.Time); len(ghosts) > 0 && (end.LastSeq == 0 || lost > l.opts.mostLost()) {
		return fmt.Errorf("jetstream: %w: stream %s ends with sequence %d, and %s holds records up to %d, of %v, which is more than a power loss can take (%v); %s",
			errLogLost, layout.LogStream(p), end.LastSeq, layout.SegmentStream(p), newest.Sequence, lost.Round(time.Second), l.opts.mostLost(), lostAdvice)
	}
	for _, at := range ghosts {
		if err := l.secureDelete(ctx, layout.SegmentStream(p), at); err != nil {
			return err
		}
	}
	if l.opts.mostLost() < 0 {
		return nil
	}
	for _, m := range marks { // now: leftOf must find no ghost
		if err := l.dropGhostMark(ctx, m, end.LastSeq); err != nil {
			return err
		}
	}
	return nil
}

// dropGhostMark removes what the mark of an erasure says of a record or a fence that the log
// has lost: the same sequences are then those of new records. What is left of the session is
// still to be erased, also if it had been removed before: the log has lost that, too. If that
// can't be read, the mark names the last record that the log has not lost, see wantLeft.
func (l *maintenance) dropGhostMark(ctx context.Context, m wire.Message, end uint64) error {
	session, ok := layout.SessionID(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:])
	if !ok { // a server's report
		return nil
	}
	e, err := l.erasingOf(ctx, session)
	if err != nil || e.at != m.Sequence || max(e.Head, e.Fence) <= end { // a later one may be another node's
		return err
	}
	left, err := l.leftOf(ctx, session, end)
	damaged := errors.Is(err, wire.ErrDamaged)
	if err != nil && !damaged {
		return err
	}
	if e.Done && left == 0 {
		return l.forgetErasing(ctx, session, e)
	}
	if damaged {
		left = max(end, 1)
	}
	_, err = l.change(ctx, session, func(e *erasing) bool {
		if e.at != m.Sequence {
			return false
		}
		if e.Head = left; left > 0 {
			e.Removed, e.Done, e.Told = false, false, false
		}
		if e.Fence > end || e.Fence == left { // then what is left is to be fenced again
			e.Fence = 0
			for i := range e.Parts {
				if part := &e.Parts[i]; part.Stream == layout.LogStream(l.partitionOf(session)) {
					part.UpTo = min(part.UpTo, end)
				}
			}
			e.nextRound()
		}
		return true
	})
	return err
}

// leftOf returns the last sequence up to end that the log or a segment has of a session, 0 if
// there is none. It may be a fence's. What comes after end is of a session that was created since.
// Errors: errDamaged, if the log has none and the last segment can't be read.
func (l *maintenance) leftOf(ctx context.Context, session string, end uint64) (uint64, error) {
	p := l.partitionOf(session)
	m, err := l.lastMessage(ctx, layout.LogStream(p), layout.LogSubject(session, p))
	if err == nil && m.Sequence <= end {
		return m.Sequence, nil
	}
	if err != nil && !errors.Is(err, errNoMessage) {
		return 0, err
	}
	m, err = l.lastReadable(ctx, layout.SegmentStream(p), layout.SegmentSubject(session, p))
	if errors.Is(err, errNoMessage) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	s, err := wire.Unpack(m.Data)
	if err != nil || s.Last() > end {
		return 0, err
	}
	return s.Last(), nil
}

// mostLost is how long a time's records a power loss can take from the log and leave
// in segments.
func (o options) mostLost() time.Duration {
	switch interval := o.syncInterval(); {
	case o.Replicas > 1 || o.Durability == eventlog.DurabilityFsync:
		return -1 // none
	case interval > 0:
		return 2*interval + lateSync
	default:
		return 2*unknownSync + lateSync
	}
}
