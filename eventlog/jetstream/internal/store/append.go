package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/streams"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// Append implements eventlog.Log.
func (l *Store) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	began := time.Now()
	last, err := l.append(ctx, session, expected, entries)
	l.Metrics.Appended(began, entries, err)
	return last, err
}

// createTries is how often an append that creates a session is retried because an erasure
// was in progress, or the log grew.
const createTries = 10

func (l *Store) append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (last uint64, err error) {
	for range createTries {
		last, err = l.appendOnce(ctx, session, expected, entries)
		if !errors.Is(err, errBlobsTaken) && !errors.Is(err, streams.ErrMisplaced) {
			break
		}
	}
	return last, err
}

func (l *Store) appendOnce(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	if expected == 0 {
		if err := l.AwaitPermit(ctx, session); err != nil {
			return 0, err
		}
	}
	p := l.PartitionOf(session)
	if _, _, err := l.Place(session); err != nil {
		return 0, err
	}
	subject := layout.LogSubject(session, p)
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	if why := l.Refuses(ctx.Value(freeing{}) != nil); why != "" {
		return 0, fmt.Errorf("%w: %s", eventlog.ErrRefused, why)
	}
	if len(entries) == 0 || len(entries) > eventlog.MaxAppendRecords {
		return 0, fmt.Errorf("%w: an append takes 1 to %d records", eventlog.ErrTooLarge, eventlog.MaxAppendRecords)
	}
	for _, e := range entries {
		if len(e.Payload) > eventlog.MaxPayload {
			return 0, fmt.Errorf("%w: %d bytes, at most %d", eventlog.ErrTooLarge, len(e.Payload), eventlog.MaxPayload)
		}
	}
	if err := l.Holds.Wait(ctx, session); err != nil {
		return 0, err
	}
	if expected == 0 {
		// A purge may have left no message in the log to compare with.
		if s, _, err := l.LastSegment(ctx, session); err != nil {
			return 0, fmt.Errorf("%w: %w", eventlog.ErrUnavailable, err)
		} else if s != nil {
			return 0, &eventlog.ConflictError{Head: s.Last()}
		}
	} else if err := l.checkExpected(ctx, session, expected); err != nil {
		return 0, err
	}
	a, err := l.NewAppend(ctx, session, subject, expected, entries)
	var last uint64
	if err == nil {
		last, err = l.compareAppend(ctx, a, p)
	}
	if err == nil && expected == 0 {
		err = l.ConfirmPlace(ctx, session, p)
	}
	if refused, ok := errors.AsType[*eventlog.ConflictError](err); ok && refused.Head < expected && !l.endsBefore(ctx, session, expected) {
		err = fmt.Errorf("%w: refused by a server that may lead no more: %w", eventlog.ErrOutcomeUnknown, link.ErrStaleLeader)
	}
	if err == nil {
		err = l.confirmBlobs(ctx, a, last)
	}
	if err != nil {
		if last > 0 && errors.Is(err, eventlog.ErrOutcomeUnknown) {
			l.announceLate(a, last)
		}
		l.DropBlobs(ctx, a, err)
		return last, err
	}
	if !wire.IsErased(a.Messages[len(a.Messages)-1].Header) {
		l.checked.add(session, last)
	}
	l.announce(a, last)
	if l.Appended != nil {
		l.Appended(session, expected, last, a.Records)
	}
	return last, nil
}

// compareAppend stores a if its expected record is the session's last one, also if only a
// segment still has that record.
func (l *Store) compareAppend(ctx context.Context, a *PendingAppend, p int) (last uint64, err error) {
	session, expected := a.Session, a.Expected
	c := l.Committers[p]
	if expected > 0 && expected < c.Begins.Load() {
		err = &eventlog.ConflictError{} // a purge has left no message to compare with
	} else {
		last, err = c.compare(ctx, a)
	}
	if refused, conflict := errors.AsType[*eventlog.ConflictError](err); conflict && expected == 0 && refused.Head > 0 {
		if _, _, herr := l.HeadPlace(ctx, session); errors.Is(herr, eventlog.ErrSessionNotFound) { // it may have been a stray
			last, err = c.compare(ctx, a)
		}
	}
	if refused, conflict := errors.AsType[*eventlog.ConflictError](err); conflict && expected > 0 {
		head, inLog, herr := l.HeadPlace(ctx, session)
		switch {
		case herr != nil:
		case !inLog && head == expected:
			a.FollowPurged()
			if last, err = c.compare(ctx, a); err == nil {
				err = l.ConfirmBehind(ctx, session, last)
			}
		default:
			refused.Head = head
		}
	}
	return last, err
}

// ConfirmBehind checks, for an append after a purged record, whether the session was
// erased since the segments were read: then the append is a stray, and is removed.
func (l *Store) ConfirmBehind(ctx context.Context, session string, last uint64) error {
	if _, _, err := l.HeadPlace(ctx, session); err != nil && !errors.Is(err, eventlog.ErrSessionNotFound) {
		return fmt.Errorf("%w: %w", eventlog.ErrOutcomeUnknown, err)
	}
	there, err := l.InLog(ctx, session, last)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", eventlog.ErrOutcomeUnknown, err)
	case !there:
		return eventlog.ErrSessionNotFound
	}
	return nil
}

// NewAppend prepares the messages of an append. It stores blobs first; with an error it
// returns those that were stored.
func (l *Store) NewAppend(ctx context.Context, session, subject string, expected uint64, entries []eventlog.Entry) (*PendingAppend, error) {
	a := &PendingAppend{
		Session: session, Expected: expected, ctx: ctx,
		Messages: make([]*nats.Msg, len(entries)), Records: make([]wire.Stored, len(entries)),
	}
	for i, e := range entries {
		r := wire.Stored{Record: eventlog.Record{Entry: e}, Linked: true}
		if len(e.Payload) > l.Inline {
			ref, err := l.AppendBlob(ctx, a, e.Payload)
			if err != nil {
				return a, err
			}
			r.Blob, r.Payload = ref.String(), ref.Placeholder(e.Type)
		}
		a.Records[i] = r
		a.Messages[i] = wire.NewMessage(subject, r, l.GroupSync()) // otherwise the server republishes the message as it is
		a.bytes += len(r.Payload)
	}
	if expected == 0 && len(a.blobs) > 0 {
		for _, m := range a.Messages {
			m.Header[wire.HeaderSince] = []string{strconv.FormatUint(a.since, 10)}
		}
	}
	// Only the first message has the comparison.
	a.Messages[0].Header[wire.HeaderExpectedLast] = []string{strconv.FormatUint(expected, 10)}
	return a, nil
}
