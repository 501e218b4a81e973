package store

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
)

const (
	// readTries is how often a page is requested again without progress before a read is
	// incomplete; a replica may lag.
	readTries = 50
	// FewSequences is the number of sequences within which a read does not look for
	// segments: the log returns so few records quicker, in one page.
	FewSequences = 100
)

// Head implements eventlog.Log: it asks the streams' leaders.
func (l *Store) Head(ctx context.Context, session string) (uint64, error) {
	head, _, err := l.HeadPlace(ctx, session)
	return head, err
}

// HeadPlace returns the head, and whether it is still in the log stream: after a purge
// only segments may have it.
func (l *Store) HeadPlace(ctx context.Context, session string) (head uint64, inLog bool, err error) {
	stream, subject, err := l.Place(session)
	if err != nil {
		return 0, false, err
	}
	m, err := l.LastReadable(ctx, stream, subject)
	switch {
	case errors.Is(err, link.ErrNoMessage):
	case err != nil:
		return 0, false, err
	default:
		stray, err := l.dropStray(ctx, session, stream, m)
		if err != nil {
			return 0, false, err
		}
		if stray && l.Opts.ReadOnly { // it is still there, and was stored when the log had no other record of the session
			break
		}
		if stray {
			return l.HeadPlace(ctx, session)
		}
		if wire.IsErased(m.Header) {
			return 0, false, eventlog.ErrSessionNotFound
		}
		if wire.First(m.Header, wire.HeaderSince) == "" {
			l.checked.add(session, m.Sequence)
		}
		return m.Sequence, true, nil
	}
	s, _, err := l.LastSegment(ctx, session)
	if err != nil {
		return 0, false, err
	}
	if s == nil {
		return 0, false, eventlog.ErrSessionNotFound
	}
	l.checked.add(session, s.Last())
	return s.Last(), false, nil
}

// Read implements eventlog.Log.
func (l *Store) Read(ctx context.Context, session string, from, to uint64) iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) {
		for r, err := range l.WithPayloads(ctx, session, l.ReadStored(ctx, session, from, to)) {
			if !yield(r.Record, err) || err != nil {
				return
			}
		}
	}
}

// WithPayloads yields records with their blobs loaded.
func (l *Store) WithPayloads(ctx context.Context, session string, records iter.Seq2[wire.Stored, error]) iter.Seq2[wire.Stored, error] {
	return func(yield func(wire.Stored, error) bool) {
		for r, err := range records {
			if err == nil && r.Blob != "" {
				r.Payload, err = l.Payload(ctx, session, r)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// Payload returns the blob of a record. If it is missing, it was erased since the record
// was read.
func (l *Store) Payload(ctx context.Context, session string, r wire.Stored) ([]byte, error) {
	if r.Since != "" {
		if taken, err := l.blobsTaken(ctx, session, r.Since, r.Sequence); err != nil {
			return nil, err
		} else if taken {
			return nil, ErrRecreated
		}
	}
	for try := 0; ; try++ {
		b, err := l.LoadBlob(ctx, session, r.Blob)
		if !errors.Is(err, errNoBlob) {
			return b, err
		}
		there, terr := l.Lives(ctx, session, r.Sequence)
		if terr == nil && !there {
			return nil, ErrRecreated
		}
		if try == missingTries || !l.Pause(ctx) {
			if errors.Is(terr, eventlog.ErrUnavailable) { // it may have been erased
				err = terr
			}
			return nil, err
		}
	}
}

// missingTries is how often a missing payload is requested.
const missingTries = 10

// ReadStored yields records from segments and the log. If there is much to read, segments
// come first, and the log has the rest. If the log begins after a gap, there was a purge,
// and segments have the records. Each record names its predecessor, so that no record is
// left out or read twice where it switches between them.
func (l *Store) ReadStored(ctx context.Context, session string, from, to uint64) iter.Seq2[wire.Stored, error] {
	return l.ReadFrom(ctx, session, Cursor{At: from}, to)
}

// Cursor is the position at which a read begins.
type Cursor struct {
	At uint64
	// Known: the reader has the record at At. The next record must name it.
	Known bool
	// Resumed: At comes from a client. The session did not begin later, unless it was
	// erased and created again.
	Resumed bool
}

// ErrRecreated: the reader's records are of a session that was erased; the id may be in
// use again.
var ErrRecreated = fmt.Errorf("%w: it was erased since", eventlog.ErrSessionNotFound)

// leadsTo reports whether r may be the record after the cursor, of a session whose head
// was at least head when the read began. Sequences are never used again, and an erasure
// stores its tombstone after the last record: the first record of a session that was created
// again comes after both.
func (c Cursor) leadsTo(r wire.Stored, head uint64) bool {
	switch {
	case !r.Linked:
		return true
	case c.Known:
		return r.Previous == c.At
	case r.Previous == 0 && r.Sequence > head:
		return false
	}
	return !c.Resumed || c.At == 0 || r.Previous > 0 || r.Sequence == c.At+1
}

func (l *Store) ReadFrom(ctx context.Context, session string, from Cursor, to uint64) iter.Seq2[wire.Stored, error] {
	return func(yield func(wire.Stored, error) bool) {
		err := l.readTo(ctx, session, from, to, func(r wire.Stored) bool { return yield(r, nil) })
		if err != nil && !errors.Is(err, link.ErrStopped) {
			yield(wire.Stored{}, err)
		}
	}
}

func (l *Store) readTo(ctx context.Context, session string, from Cursor, to uint64, yield func(wire.Stored) bool) error {
	ahead := max(from.At, to)
	head, known := eventlog.HeadFrom(ctx, session)
	var err error
	if !known || ahead > head {
		head, _, err = l.HeadPlace(ctx, session)
	}
	if err != nil && !errors.Is(err, eventlog.ErrSessionNotFound) {
		return err
	}
	switch {
	case ahead > head && !l.endsBefore(ctx, session, ahead):
		return fmt.Errorf("%w: %w", eventlog.ErrUnavailable, link.ErrStaleLeader)
	case err != nil:
		return err
	case ahead > head:
		return &eventlog.CursorAheadError{Cursor: ahead, Head: head}
	}
	if to == 0 {
		to = head
	}
	at, done, recreated := from.At, false, false
	take := func(r wire.Stored) bool {
		if recreated = !from.leadsTo(r, head); recreated {
			return false
		}
		if r.Sequence > to {
			done = true
			return false
		}
		if !yield(r) {
			return false
		}
		from = Cursor{At: r.Sequence, Known: true}
		at, done = r.Sequence, r.Sequence == to
		return !done
	}
	// ours returns ErrIncomplete if records that a replica has are of a session that was
	// erased, whose id is in use again: the replica lags. Records up to the head are not.
	ours := func(first, last uint64) error {
		if from.Known || l.Opts.Replicas <= 1 || last == head {
			return nil
		}
		tombstone, err := l.lastTombstone(ctx, session)
		if err == nil && first <= tombstone {
			err = fmt.Errorf("%w: record %d is of a session that was erased", eventlog.ErrIncomplete, first)
		}
		return err
	}
	sealed := to-at > l.few // read segments next
	var tail []wire.Stored  // the last records, if they were read backwards
	tailed := false
	began := time.Now()
	for idle := 0; at < to; {
		before, fromLog := at, !sealed
		if sealed {
			err = l.ReadSegments(ctx, session, at, to, take)
		} else {
			upTo := to
			if err = nil; !tailed && to-at > l.far {
				tailed = true
				tail, err = l.lastRecords(ctx, session, at, to)
			}
			if len(tail) > 0 {
				upTo = tail[0].Previous
				if err == nil {
					err = ours(tail[0].Sequence, to)
				}
			}
			switch {
			case err != nil:
			case upTo > at:
				err = l.readPage(ctx, session, at, upTo, false, ours, take)
			default:
				err = takeBehind(tail, at, take)
			}
			if errors.Is(err, errGap) {
				if err = l.ReadSegments(ctx, session, at, to, take); err == nil && at == before {
					err = l.readPage(ctx, session, at, to, true, ours, take)
				}
			}
			if errors.Is(err, errGap) {
				err = fmt.Errorf("%w: the record after %d is neither in the log nor in a segment", eventlog.ErrIncomplete, at)
			}
		}
		sealed = false
		switch {
		case done:
			return nil
		case recreated:
			return ErrRecreated
		case err != nil && !errors.Is(err, eventlog.ErrIncomplete):
			return err
		case at > before:
			idle, began = 0, time.Now()
		case err == nil && !fromLog: // not sealed yet
		case errors.Is(err, nats.ErrNoResponders) && time.Since(began) > link.LeaderPatience:
			return fmt.Errorf("%w: %w", eventlog.ErrUnavailable, err)
		case idle >= readTries && !errors.Is(err, nats.ErrNoResponders):
			if err == nil {
				err = fmt.Errorf("%w: nothing after %d, though the head is %d", eventlog.ErrIncomplete, at, head)
			}
			return err
		default:
			// A replica lags, or the rest was purged from the log.
			if idle++; idle > 1 {
				if _, _, herr := l.HeadPlace(ctx, session); errors.Is(herr, eventlog.ErrSessionNotFound) {
					return herr
				}
				if floor, ferr := l.Floor(ctx, session); ferr == nil && at < floor {
					return &eventlog.TrimmedError{Cursor: at, Floor: floor}
				}
				if !l.Pause(ctx) {
					return context.Cause(ctx)
				}
			}
			sealed = true
		}
	}
	return nil
}

// takeBehind passes the records after from to take until that returns false.
func takeBehind(records []wire.Stored, from uint64, take func(wire.Stored) bool) error {
	for _, r := range records {
		if r.Sequence > from && !take(r) {
			return link.ErrStopped
		}
	}
	return nil
}

// errGap: the log's next record does not follow the cursor.
var errGap = errors.New("jetstream: gap")

// readPage passes the log's next records after from to take until that returns false, and
// requests none after to. It stops before a gap. If the gap is right after from, the
// error is errGap; so it is for a message that does not name its predecessor, unless
// there are no segments. ours is asked about the first and the last record beforehand.
func (l *Store) readPage(ctx context.Context, session string, from, to uint64, noSegments bool,
	ours func(first, last uint64) error, take func(wire.Stored) bool) error {
	stream, subject, err := l.Place(session)
	if err != nil {
		return err
	}
	messages, err := l.GetBatch(ctx, stream, subject, from+1, int(min(to-from, link.PageRecords)))
	if err != nil {
		return err
	}
	at := from
	for i, m := range messages {
		r, err := wire.RecordOf(m.Header, m.Data)
		if err == nil && i == 0 {
			last, _ := strconv.ParseUint(wire.First(messages[len(messages)-1].Header, wire.HeaderSequence), 10, 64)
			err = ours(r.Sequence, last)
		}
		if err != nil {
			return err
		}
		if r.Linked && r.Previous > at || !r.Linked && i == 0 && !noSegments {
			if i == 0 {
				return errGap
			}
			return nil
		}
		if !take(r) {
			return link.ErrStopped
		}
		at = r.Sequence
	}
	return nil
}
