// Package memory is an eventlog.Log in memory, for tests and examples. It
// keeps the whole contract but durability.
package memory

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/internal/hold"
)

// MaxRecordBytes is the largest payload that Append takes.
const MaxRecordBytes = eventlog.MaxPayload

// Log is the twin of the JetStream log. The zero value is not usable; see
// New.
type Log struct {
	mu       sync.Mutex
	last     uint64 // of all sessions: a session's sequences have gaps
	sessions map[string][]eventlog.Record
	order    []place // of all records, those of erased sessions too
	identity string
	changed  chan struct{} // closed and replaced at every append
	closed   bool
	holds    hold.Holds
	held     atomic.Uint64
}

// logs counts the logs of this process.
var logs atomic.Int64

// New returns an empty log.
func New() *Log {
	return &Log{
		sessions: map[string][]eventlog.Record{}, changed: make(chan struct{}), identity: fmt.Sprintf("memory-%d", logs.Add(1)),
	}
}

// Append implements eventlog.Log.
func (l *Log) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	if err := eventlog.ValidateSessionID(session); err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, context.Cause(ctx)
	}
	if len(entries) == 0 || len(entries) > eventlog.MaxAppendRecords {
		return 0, eventlog.ErrTooLarge
	}
	for _, e := range entries {
		if len(e.Payload) > MaxRecordBytes {
			return 0, eventlog.ErrTooLarge
		}
	}
	if err := l.holds.Wait(ctx, session); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, eventlog.ErrClosed
	}
	records := l.sessions[session]
	if head := headOf(records); head != expected {
		return 0, &eventlog.ConflictError{Head: head}
	}
	for _, e := range entries {
		l.last++
		e = e.Encoded()
		e.Payload = slices.Clone(e.Payload)
		records = append(records, eventlog.Record{Sequence: l.last, Time: time.Now(), Entry: e})
		l.order = append(l.order, place{l.last, session})
	}
	l.sessions[session] = records
	close(l.changed)
	l.changed = make(chan struct{})
	return l.last, nil
}

// Hold implements eventlog.Log.
func (l *Log) Hold(ctx context.Context, session string) (held context.Context, release func()) {
	holder := strconv.FormatUint(l.held.Add(1), 10)
	l.holds.Begin(session, holder)
	return hold.Holder(ctx, session), func() { l.holds.End(session, holder) }
}

// Read implements eventlog.Log.
func (l *Log) Read(ctx context.Context, session string, from, to uint64) iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) {
		records, _, err := l.after(session, from)
		if err == nil && to > 0 {
			if head, _ := l.Head(ctx, session); to > head {
				err = &eventlog.CursorAheadError{Cursor: to, Head: head}
			}
		}
		if err != nil {
			yield(eventlog.Record{}, err)
			return
		}
		for _, r := range records {
			if to > 0 && r.Sequence > to {
				return
			}
			if ctx.Err() != nil {
				yield(eventlog.Record{}, context.Cause(ctx))
				return
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

// Follow implements eventlog.Log.
func (l *Log) Follow(ctx context.Context, session string, from uint64) iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) {
		leftOut, known := eventlog.WriterLeftOut(ctx), false
		for {
			records, changed, err := l.after(session, from)
			if err == nil && from > 0 && !l.follows(session, from, known) {
				err = fmt.Errorf("%w: it was erased since", eventlog.ErrSessionNotFound)
			}
			if err != nil {
				yield(eventlog.Record{}, err)
				return
			}
			for _, r := range records {
				if (leftOut == "" || r.Writer != leftOut) && !yield(r, nil) {
					return
				}
				from, known = r.Sequence, true
			}
			select {
			case <-changed:
			case <-ctx.Done():
				yield(eventlog.Record{}, context.Cause(ctx))
				return
			}
		}
	}
}

// follows reports whether a follower's cursor, the sequence of a record that it has if
// known, may be of the session that is there, and not of one that was erased before.
func (l *Log) follows(session string, from uint64, known bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	records := l.sessions[session]
	return len(records) == 0 || records[0].Sequence <= from || !known && records[0].Sequence == from+1
}

// after returns the records after from, and a channel that is closed when
// there are more.
func (l *Log) after(session string, from uint64) ([]eventlog.Record, <-chan struct{}, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, nil, eventlog.ErrClosed
	}
	records := l.sessions[session]
	head := headOf(records)
	if head == 0 {
		return nil, nil, eventlog.ErrSessionNotFound
	}
	if from > head {
		return nil, nil, &eventlog.CursorAheadError{Cursor: from, Head: head}
	}
	i, _ := slices.BinarySearchFunc(records, from+1, func(r eventlog.Record, seq uint64) int {
		return int(int64(r.Sequence) - int64(seq))
	})
	return records[i:len(records):len(records)], l.changed, nil
}

// Head implements eventlog.Log.
func (l *Log) Head(_ context.Context, session string) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, eventlog.ErrClosed
	}
	if head := headOf(l.sessions[session]); head > 0 {
		return head, nil
	}
	return 0, eventlog.ErrSessionNotFound
}

// Sessions implements eventlog.Log.
func (l *Log) Sessions(context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		l.mu.Lock()
		ids := make([]string, 0, len(l.sessions))
		for id := range l.sessions {
			ids = append(ids, id)
		}
		l.mu.Unlock()
		slices.Sort(ids)
		for _, id := range ids {
			if !yield(id, nil) {
				return
			}
		}
	}
}

// Info implements eventlog.Log.
func (l *Log) Info() eventlog.Info {
	return eventlog.Info{
		Backend: "memory", Durability: eventlog.DurabilityMemory, Partitions: 1, MaxRecordBytes: MaxRecordBytes, GatherFrom: 2,
	}
}

// Close implements eventlog.Log.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.closed = true
		l.holds.Close()
		close(l.changed)
	}
	return nil
}

func headOf(records []eventlog.Record) uint64 {
	if len(records) == 0 {
		return 0
	}
	return records[len(records)-1].Sequence
}
