package maintenance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/store"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// errLogLost: the log lacks records that segments have.
var errLogLost = errors.New("the log lacks records that were acknowledged")

// dropAllOrphanSegments calls dropOrphanSegments for each partition.
func (l *Maintenance) dropAllOrphanSegments(ctx context.Context) error {
	for p := range l.Partitions() {
		if err := l.dropOrphanSegments(ctx, p, link.LeaderPatience); err != nil {
			return err
		}
	}
	return nil
}

// dropOrphanSegments calls dropOrphanSegmentsOnce. For a log with replicas it waits up to
// patience until the streams are known and the log's end is not before that of the
// segments: a server that was just elected, or one that was stopped and still believes that
// it leads, lacks streams and records that the others have acknowledged.
func (l *Maintenance) dropOrphanSegments(ctx context.Context, p int, patience time.Duration) error {
	began := time.Now()
	for {
		err := l.dropOrphanSegmentsOnce(ctx, p)
		unsettled := errors.Is(err, errLogLost) || errors.Is(err, natsjs.ErrStreamNotFound)
		if !unsettled || l.Opts.Replicas <= 1 || time.Since(began) > patience {
			return err
		}
		if err := l.Rest(ctx, link.NewsTime); err != nil {
			return err
		}
	}
}

// dropOrphanSegmentsOnce removes segments with records that the log has lost, and their
// traces in marks of erasures. On a server that syncs only at intervals, a power loss can
// cut off the log's end and not the segments'; the log would then assign the lost
// sequences again. Segments are written in the order of their records, so only the last
// ones can be orphans. If more is missing than a power loss can take, the segments may be
// the only copy: then it removes none, and the log can't be opened.
func (l *Maintenance) dropOrphanSegmentsOnce(ctx context.Context, p int) error {
	// The segments first: the log had their records when they were written.
	segments, err := l.FindStream(ctx, layout.SegmentStream(p))
	if err != nil {
		return err
	}
	log, err := l.FindStream(ctx, layout.LogStream(p))
	if err != nil {
		return err
	}
	end, state := log.CachedInfo().State, segments.CachedInfo().State
	if end.LastSeq > 0 && end.LastTime.IsZero() {
		return nil // restored, without an append since
	}
	var orphans []uint64
	var marks []wire.Message
	var oldest, newest eventlog.Record
	for at := state.LastSeq; at >= max(state.FirstSeq, 1); at-- {
		m, err := l.MessageAt(ctx, layout.SegmentStream(p), at)
		if errors.Is(err, link.ErrNoMessage) {
			continue
		}
		if err != nil {
			return err
		}
		if m.At.Before(end.LastTime) {
			break // the log was longer when this one was written, and still is
		}
		if strings.HasPrefix(m.Subject, layout.ErasedSubjects) {
			marks = append(marks, m)
			continue
		}
		s, err := wire.Unpack(m.Data)
		if err != nil { // a floor, or damage, which a reader reports
			continue
		}
		if s.Last() <= end.LastSeq {
			continue
		}
		orphans = append(orphans, at)
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
	if lost := newest.Time.Sub(oldest.Time); len(orphans) > 0 && (end.LastSeq == 0 || lost > l.Opts.MostLost()) {
		return fmt.Errorf("jetstream: %w: stream %s ends with sequence %d, and %s holds records up to %d, of %v, which is more than a power loss can take (%v); %s",
			errLogLost, layout.LogStream(p), end.LastSeq, layout.SegmentStream(p), newest.Sequence, lost.Round(time.Second), l.Opts.MostLost(), link.LostAdvice)
	}
	for _, at := range orphans {
		if err := l.SecureDelete(ctx, layout.SegmentStream(p), at); err != nil {
			return err
		}
	}
	if l.Opts.MostLost() < 0 {
		return nil
	}
	for _, m := range marks { // after the segments: leftOf must find no orphan
		if err := l.dropOrphanMark(ctx, m, end.LastSeq); err != nil {
			return err
		}
	}
	return nil
}

// dropOrphanMark changes the mark of an erasure that names a record or a tombstone which the
// log has lost: the same sequences will be those of new records. The rest of the session
// must still be erased, also if it had been removed before, since the log has lost that,
// too. If that can't be read, the mark names the last record that the log has not lost,
// see wantLeft.
func (l *Maintenance) dropOrphanMark(ctx context.Context, m wire.Message, end uint64) error {
	session, ok := layout.SessionID(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:])
	if !ok { // a server's report
		return nil
	}
	e, err := l.ErasingOf(ctx, session)
	if err != nil || e.At != m.Sequence || max(e.Head, e.Tombstone) <= end { // a later mark may be another node's
		return err
	}
	left, err := l.leftOf(ctx, session, end)
	damaged := errors.Is(err, wire.ErrDamaged)
	if err != nil && !damaged {
		return err
	}
	if e.Done && left == 0 {
		return l.ForgetErasing(ctx, session, e)
	}
	if damaged {
		left = max(end, 1)
	}
	_, err = l.Change(ctx, session, func(e *store.Erasing) bool {
		if e.At != m.Sequence {
			return false
		}
		if e.Head = left; left > 0 {
			e.Removed, e.Done, e.Told = false, false, false
		}
		if e.Tombstone > end || e.Tombstone == left { // then the rest needs a tombstone again
			e.Tombstone = 0
			for i := range e.Parts {
				if part := &e.Parts[i]; part.Stream == layout.LogStream(l.PartitionOf(session)) {
					part.UpTo = min(part.UpTo, end)
				}
			}
			e.NextRound()
		}
		return true
	})
	return err
}

// leftOf returns the last sequence up to end that the log or a segment has of a session,
// 0 if there is none. It may be a tombstone's. Records after end are of a session that was
// created since. Errors: ErrDamaged if the log has none and the last segment can't be
// read.
func (l *Maintenance) leftOf(ctx context.Context, session string, end uint64) (uint64, error) {
	p := l.PartitionOf(session)
	m, err := l.LastMessage(ctx, layout.LogStream(p), layout.LogSubject(session, p))
	if err == nil && m.Sequence <= end {
		return m.Sequence, nil
	}
	if err != nil && !errors.Is(err, link.ErrNoMessage) {
		return 0, err
	}
	m, err = l.LastReadable(ctx, layout.SegmentStream(p), layout.SegmentSubject(session, p))
	if errors.Is(err, link.ErrNoMessage) {
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
