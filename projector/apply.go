package projector

import (
	"cmp"
	"errors"
	"strings"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// Decoded is a record's decoded payload: a chunk, a fact, or the reason why it can't be
// read.
type Decoded struct {
	Chunk eventlog.Chunk
	Fact  fact.Fact
	Err   error
}

// Decode reads a record's payload for [ApplyDecoded].
func Decode(r eventlog.Record) (d Decoded) {
	switch r.Kind {
	case eventlog.KindChunk:
		d.Chunk, d.Err = r.Chunk()
	case eventlog.KindFact:
		d.Fact, d.Err = r.Fact()
	default:
		d.Err = errNeither
	}
	if d.Err != nil {
		d.Chunk, d.Fact = nil, nil
	}
	return d
}

var errNeither = errors.New("neither a chunk nor a fact")

// Apply folds a record into t. Records at or before t.Head change nothing.
func Apply(t *Tree, r eventlog.Record) {
	if r.Sequence > t.Head {
		ApplyDecoded(t, r, Decode(r))
	}
}

// ApplyDecoded is [Apply] for a caller that also needs the decoded record, so that it is
// decoded once. Neither may change the decoded value.
func ApplyDecoded(t *Tree, r eventlog.Record, d Decoded) {
	if r.Sequence <= t.Head {
		return
	}
	before := t.Head
	t.Head = r.Sequence
	t.Bytes += int64(len(r.Payload))
	for _, name := range []*string{&r.Agent, &r.Type, &r.Writer} {
		*name = strings.ToValidUTF8(*name, "\ufffd") // JSON would replace invalid bytes, and a saved state would differ
	}
	t.noteAppend(r)
	defer t.restWork()
	switch {
	case d.Err != nil:
		t.park(r, d.Err.Error())
	case d.Chunk != nil:
		base := eventlog.BaseOf(d.Chunk)
		s := t.session(r.Agent, base.Timestamp)
		s.AgentType = cmp.Or(s.AgentType, base.AgentType)
		t.touch(s, r, base.Timestamp)
		t.spoken(r)
		if t.foreign(s) {
			return
		}
		if reason := t.applyChunk(s, r, d.Chunk, before); reason != "" {
			t.park(r, reason)
		}
	case d.Fact != nil:
		if _, brought := d.Fact.(*fact.SessionImported); brought {
			return // it is already so
		}
		s := t.session(r.Agent, d.Fact.At())
		t.touch(s, r, d.Fact.At())
		turn := s.Turn
		if reason := t.applyFact(s, r, d.Fact, before); reason != "" {
			t.park(r, reason)
		}
		if _, back := d.Fact.(*eventlog.Truncated); !back { // a rollback restores it
			s.trackStop(turn, r.Sequence)
		}
	}
}

// Fold returns the state after the given records.
func Fold(records ...eventlog.Record) *Tree {
	t := new(Tree)
	for _, r := range records {
		Apply(t, r)
	}
	return t
}

func (t *Tree) park(r eventlog.Record, reason string) {
	t.Parked = append(t.Parked, Parked{Sequence: r.Sequence, Type: r.Type, Reason: strings.ToValidUTF8(reason, "\ufffd")})
}

// session returns the session of a record. The first session is the root.
func (t *Tree) session(id string, at int64) *Session {
	if t.SessionID == "" {
		t.Session = newSession(id, at)
	}
	if id == t.SessionID {
		return &t.Session
	}
	s := t.Children[id]
	if s == nil { // a damaged state may have null there
		child := newSession(id, at)
		s = &child
		if t.Children == nil {
			t.Children = map[string]*Session{}
		}
		t.Children[id] = s
	}
	return s
}

// foreign reports whether a session belongs to another server, which alone interprets its
// chunks.
func (t *Tree) foreign(s *Session) bool {
	return s != &t.Session && (s.Child == nil || s.Child.Remote)
}

func newSession(id string, at int64) Session {
	return Session{
		SessionID: id, StreamID: id, Status: SessionActive, StreamStatus: eventlog.StreamActive,
		Messages: []Message{}, CustomState: emptyState, CreatedAt: at,
	}
}

func (t *Tree) touch(s *Session, r eventlog.Record, at int64) {
	s.UpdatedAt = max(s.UpdatedAt, at)
	s.StreamStatus = s.StreamStatus.After(r.Envelope)
}

// commit marks a commit point.
func (s *Session) commit(seq uint64) {
	s.Version++
	s.CommittedAt = seq
}
