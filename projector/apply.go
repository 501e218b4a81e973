package projector

import (
	"strings"

	"github.com/helixd/helixd/eventlog"
)

// Apply folds a record into t. Records at or before t.Head change nothing.
func Apply(t *Tree, r eventlog.Record) {
	if r.Sequence <= t.Head {
		return
	}
	before := t.Head
	t.Head = r.Sequence
	for _, name := range []*string{&r.Agent, &r.Type, &r.Writer} {
		*name = strings.ToValidUTF8(*name, "\ufffd") // else a saved state would differ
	}
	t.noteAppend(r)
	switch r.Kind {
	case eventlog.KindChunk:
		c, err := r.Chunk()
		if err != nil {
			t.park(r, err.Error())
			return
		}
		base := eventlog.BaseOf(c)
		s := t.session(r.Agent, base.Timestamp)
		if s.AgentType == "" {
			s.AgentType = base.AgentType
		}
		t.touch(s, r, base.Timestamp)
		t.spoken(r)
		if t.foreign(s) {
			return
		}
		if reason := s.applyChunk(r, c, before); reason != "" {
			t.park(r, reason)
		}
	case eventlog.KindFact:
		f, err := r.Fact()
		if err != nil {
			t.park(r, err.Error())
			return
		}
		s := t.session(r.Agent, f.At())
		t.touch(s, r, f.At())
		turn := s.Turn
		if reason := t.applyFact(s, r, f, before); reason != "" {
			t.park(r, reason)
		}
		if _, back := f.(*eventlog.Truncated); !back { // a rollback restores it
			s.trackStop(turn, r.Sequence)
		}
	default:
		t.park(r, "neither a chunk nor a fact")
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

// session returns the session that a record is about. The first one is the
// root.
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

// foreign reports whether a session is another server's: what its chunks mean
// is known there only.
func (t *Tree) foreign(s *Session) bool {
	return s != &t.Session && (s.Child == nil || s.Child.Remote)
}

func newSession(id string, at int64) Session {
	return Session{
		SessionID: id, StreamID: id, Status: SessionActive, StreamStatus: eventlog.StreamActive,
		Messages: []Message{}, CustomState: []byte("{}"), CreatedAt: at,
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
