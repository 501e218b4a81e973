package jetstream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

const (
	// leftFor is for how long large payloads of a session without any record stay. No request is under
	// way for so long, see doneFor. It is a day because the session may be lost, not its payloads:
	// then somebody may repair the log.
	leftFor = 24 * time.Hour
	// leftEvery is how often FinishErasures looks for them.
	leftEvery = time.Hour
)

// leftDue reports whether it is time for markLeftBlobs, once.
func (l *maintenance) leftDue(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	due := now.Sub(l.leftAt) >= leftEvery
	if due {
		l.leftAt = now
	}
	return due
}

// markLeftBlobs marks the large payloads that appends which were to create a session have left: they
// were stored, their sender died before the record, and no erasure of the session would look
// for them. What was marked is removed as an erasure is, see erasing.
func (l *maintenance) markLeftBlobs(ctx context.Context, now time.Time) error {
	left, err := l.subjectsOf(ctx, layout.BlobStream, layout.BlobSubjects+">")
	if err != nil || len(left) == 0 {
		return err
	}
	for session, err := range l.Sessions(ctx) {
		if err != nil {
			return err
		}
		delete(left, session)
	}
	var failed []error
	for _, session := range slices.Sorted(maps.Keys(left)) {
		began := time.Now()
		if err := l.markLeft(ctx, session, now.Add(-leftFor)); err != nil {
			failed = append(failed, fmt.Errorf("large payloads without a session: %q: %w", session, err))
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		l.yield(ctx, began)
	}
	return errors.Join(failed...)
}

// markLeft marks the payloads that were stored before a moment, if the session has no record. Later
// appends rely on none of these: one that creates the session stores its own.
func (l *maintenance) markLeft(ctx context.Context, session string, before time.Time) error {
	p := part{Stream: layout.BlobStream, Subject: l.blobPrefix(session) + ">", Scrub: l.scrubs(layout.BlobStream)}
	for {
		m, err := l.leaderGet(ctx, p.Stream, map[string]any{"seq": p.UpTo + 1, "next_by_subj": p.Subject})
		if errors.Is(err, errNoMessage) || err == nil && !m.At.Before(before) {
			break
		}
		if err != nil {
			return err
		}
		if p.From == 0 {
			p.From = m.Sequence
		}
		p.UpTo = m.Sequence
	}
	if p.UpTo == 0 {
		return nil
	}
	if recorded, err := l.recorded(ctx, session); err != nil || recorded {
		return err
	}
	_, err := l.change(ctx, session, func(e *erasing) bool {
		e.Parts, e.Removed, e.Done = append(e.Parts, p), false, false
		e.nextRound()
		return true
	})
	return err
}

// recorded reports whether a session has a record, or a fence, also one that can't be read.
// Errors: ErrUnavailable, if a server that answered may not be the leader, which may have one.
func (l *maintenance) recorded(ctx context.Context, session string) (bool, error) {
	p := l.partitionOf(session)
	for stream, subject := range map[string]string{layout.LogStream(p): layout.LogSubject(session, p), layout.SegmentStream(p): layout.SegmentSubject(session, p)} {
		if n, err := l.count(ctx, stream, subject); err != nil || n > 0 {
			return n > 0, err
		}
		if l.opts.Replicas > 1 && !l.leads(ctx, stream) {
			return false, fmt.Errorf("%w: %w", eventlog.ErrUnavailable, errStaleLeader)
		}
	}
	return false, nil
}
