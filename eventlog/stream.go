package eventlog

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/helixd/helixd/eventlog/fact"
)

// StreamStatus is the life cycle state of a session's stream.
//
//	         stream_paused            stream_end / stream_failed
//	active ---------------> paused ------------------------------> ended / failed
//	  ^  <----------------------'                                        |
//	  |        stream_resumed                                            |
//	  '------------------------------------------------------------------'
//	                          run_requested (a new turn)
type StreamStatus string

// Stream states.
const (
	StreamActive     StreamStatus = "active"
	StreamWaiting    StreamStatus = "paused"
	StreamCompleted  StreamStatus = "ended"
	StreamTerminated StreamStatus = "failed"
)

// Terminal reports whether the stream takes chunks only after a new turn.
func (s StreamStatus) Terminal() bool { return s == StreamCompleted || s == StreamTerminated }

// After returns the status that follows s when a record of the given kind
// and type is appended. Terminal states stick until a new turn.
func (s StreamStatus) After(e Envelope) StreamStatus {
	if s == "" {
		s = StreamActive
	}
	if e.Kind != KindFact {
		return s
	}
	if e.Type == (*fact.RunRequested)(nil).Type() {
		return StreamActive
	}
	if s.Terminal() {
		return s
	}
	switch e.Type {
	case (*fact.StreamPaused)(nil).Type():
		return StreamWaiting
	case (*fact.StreamResumed)(nil).Type():
		return StreamActive
	case (*fact.StreamEnd)(nil).Type():
		return StreamCompleted
	case (*fact.StreamFailed)(nil).Type():
		return StreamTerminated
	}
	return s
}

// Refuses reports whether a record must not follow in a stream of status s:
// a terminal stream takes facts, but neither chunks nor a second end.
func (s StreamStatus) Refuses(e Envelope) bool {
	if !s.Terminal() {
		return false
	}
	switch e.Type {
	case (*fact.StreamPaused)(nil).Type(), (*fact.StreamResumed)(nil).Type(), (*fact.StreamEnd)(nil).Type(), (*fact.StreamFailed)(nil).Type():
		return true
	}
	return e.Kind == KindChunk
}

// lifecycle follows the stream of a session over its records. Unlike
// [StreamStatus.After] it knows rollbacks, which undo what they truncate,
// and leaves the facts of sub-agents out: a child's end is not the root's.
type lifecycle struct {
	session string
	facts   []Record // alive, without their payloads
	status  StreamStatus
	// since is the sequence of the record that brought the status.
	since uint64
}

// see takes the next record.
func (l *lifecycle) see(r Record) error {
	if r.Kind != KindFact {
		return nil
	}
	m, err := markerOf(r)
	switch {
	case err != nil:
		return err
	case m != nil:
		return l.rollBack(r)
	case r.Agent != l.session || !changesStream(r.Type):
		return nil
	}
	r.Entry = Entry{Envelope: r.Envelope}
	l.facts = append(l.facts, r)
	if next := l.status.After(r.Envelope); next != l.status {
		l.status, l.since = next, r.Sequence
	}
	return nil
}

// rollBack forgets the facts that a marker truncates.
func (l *lifecycle) rollBack(marker Record) error {
	var dead Truncations
	if err := dead.Add(marker); err != nil {
		return err
	}
	alive := slices.DeleteFunc(l.facts, dead.Covers)
	if len(alive) == len(l.facts) {
		return nil
	}
	l.facts, l.status, l.since = alive, "", marker.Sequence
	for _, f := range alive {
		l.status = l.status.After(f.Envelope)
	}
	return nil
}

// now returns the status; a stream begins active.
func (l *lifecycle) now() StreamStatus {
	if l.status == "" {
		return StreamActive
	}
	return l.status
}

func changesStream(factType string) bool {
	switch factType {
	case (*fact.RunRequested)(nil).Type(), (*fact.StreamPaused)(nil).Type(), (*fact.StreamResumed)(nil).Type(), (*fact.StreamEnd)(nil).Type(),
		(*fact.StreamFailed)(nil).Type():
		return true
	}
	return false
}

// left reads the records after from up to the head that retention has not removed. If
// known is set, from is the sequence of a record that the caller has read, as in [After].
func left(ctx context.Context, log Log, session string, from uint64, known bool) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for {
			records := log.Read(ctx, session, from, 0)
			if known {
				records = After(ctx, log, session, from)
			}
			var trimmed *TrimmedError
			for r, err := range records {
				if errors.As(err, &trimmed) && trimmed.Floor > from {
					break
				}
				if !yield(r, err) || err != nil {
					return
				}
			}
			if trimmed == nil {
				return
			}
			from, known = trimmed.Floor, false
		}
	}
}
