package maintenance

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/store"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

const (
	// leftFor is how long blobs of a session without any record stay. No request is under
	// way for so long, see store.DoneFor. It is a day because the session's records may
	// be lost while its blobs are not: then an operator may repair the log.
	leftFor = 24 * time.Hour
	// leftEvery is how often FinishErasures looks for them.
	leftEvery = time.Hour
)

// leftDue reports, once per leftEvery, that markLeftBlobs must be called.
func (l *Maintenance) leftDue(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	due := now.Sub(l.leftAt) >= leftEvery
	if due {
		l.leftAt = now
	}
	return due
}

// markLeftBlobs marks the blobs that appends which were to create a session have left:
// they were stored, their sender died before the record, and no erasure of the session
// would look for them. Marked blobs are removed as by an erasure, see store.Erasing.
func (l *Maintenance) markLeftBlobs(ctx context.Context, now time.Time) error {
	left, err := l.blobPlaces(ctx)
	if err != nil || len(left) == 0 {
		return err
	}
	for session, err := range l.Sessions(ctx) {
		if err != nil {
			return err
		}
		delete(left, blobPlace{session, l.PartitionOf(session)})
	}
	var failed []error
	for place := range left {
		began := time.Now()
		if err := l.markLeft(ctx, place, now.Add(-leftFor)); err != nil {
			failed = append(failed, fmt.Errorf("blobs without a session: %q: %w", place.session, err))
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		l.Yield(ctx, began)
	}
	return errors.Join(failed...)
}

// blobPlace is the blobs of a session in one partition. If the log has grown, a late
// append may have left some in the old one.
type blobPlace struct {
	session   string
	partition int
}

// blobPlaces returns where there are blobs.
func (l *Maintenance) blobPlaces(ctx context.Context) (map[blobPlace]bool, error) {
	subjects, err := l.Subjects(ctx, layout.BlobStream, layout.BlobSubjects+">")
	if err != nil {
		return nil, err
	}
	places := map[blobPlace]bool{}
	for subject := range subjects {
		partition, _, _ := strings.Cut(strings.TrimPrefix(subject, layout.BlobSubjects), ".")
		p, err := strconv.Atoi(partition)
		if session, _, ok := layout.SessionOf(subject); ok && err == nil {
			places[blobPlace{session, p}] = true
		}
	}
	return places, nil
}

// markLeft marks the blobs that were stored before a moment, if the session has no record
// or is in another partition. Later appends rely on none of these: one that creates the
// session stores its own.
func (l *Maintenance) markLeft(ctx context.Context, place blobPlace, before time.Time) error {
	session := place.session
	p := store.Part{Stream: layout.BlobStream, Subject: layout.BlobPrefix(session, place.partition) + ">", Scrub: l.Scrubs(layout.BlobStream)}
	for {
		m, err := l.LeaderGet(ctx, p.Stream, map[string]any{"seq": p.UpTo + 1, "next_by_subj": p.Subject})
		if errors.Is(err, link.ErrNoMessage) || err == nil && !m.At.Before(before) {
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
	elsewhere, err := l.Stray(ctx, session, place.partition)
	if err != nil {
		return err
	}
	if !elsewhere {
		if recorded, err := l.recorded(ctx, session); err != nil || recorded {
			return err
		}
	}
	_, err = l.Change(ctx, session, func(e *store.Erasing) bool {
		e.Parts, e.Removed, e.Done = append(e.Parts, p), false, false
		e.NextRound()
		return true
	})
	return err
}

// recorded reports whether a session has a record or a tombstone, readable or not. Errors:
// ErrUnavailable if the server that answered may not be the leader, which may have one.
func (l *Maintenance) recorded(ctx context.Context, session string) (bool, error) {
	p := l.PartitionOf(session)
	for stream, subject := range map[string]string{layout.LogStream(p): layout.LogSubject(session, p), layout.SegmentStream(p): layout.SegmentSubject(session, p)} {
		if n, err := l.Count(ctx, stream, subject); err != nil || n > 0 {
			return n > 0, err
		}
		if err := l.Certain(ctx, stream); err != nil {
			return false, err
		}
	}
	return false, nil
}
