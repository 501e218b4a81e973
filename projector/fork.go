package projector

import (
	"encoding/json"
	"fmt"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// Fork is where a session was forked from.
type Fork struct {
	SessionID string `json:"sessionId"`
	Sequence  uint64 `json:"sequence"` // in that session's log
	// Record is the sequence, in the fork's own log, of the record that holds the state
	// of the other session. Messages with this sequence come from it.
	Record uint64 `json:"record"`
	// Edits names the changes; nil: none.
	Edits *fact.ForkEdits `json:"edits,omitempty"`
}

// ForkState returns the state with which a fork of t begins, as fact.SessionForked
// carries it: the conversations, custom states and open turns of the whole tree under the
// id of the new session. It leaves out what belongs to the other log or must not be done
// twice: sequences, checkpoints, runs, claims, idempotency keys, unfinished chunks. An
// open turn is interrupted; resuming the fork continues it, and the work of its
// sub-agents. Remote sub-agents restart, in new sessions of the fork. Edits are applied
// first.
func ForkState(t *Tree, id string, edits ...Edit) (json.RawMessage, error) {
	var fork Tree
	raw, err := json.Marshal(t) // its own copy
	if err != nil {
		return nil, fmt.Errorf("projector: fork: %w", err)
	}
	if err := json.Unmarshal(raw, &fork); err != nil {
		return nil, fmt.Errorf("projector: fork: %w", err)
	}
	for _, edit := range edits {
		edit(&fork)
	}
	rename := forkIDs(t, id)
	children := fork.Children
	fork = Tree{Session: fork.Session}
	fork.Session.fork(rename)
	for _, c := range children {
		if c == nil {
			continue
		}
		c.fork(rename)
		if fork.Children == nil {
			fork.Children = map[string]*Session{}
		}
		fork.Children[c.SessionID] = c
	}
	if raw, err = eventlog.Marshal(&fork); err != nil {
		return nil, fmt.Errorf("projector: fork: %w", err)
	}
	return raw, nil
}

// fork turns a session into one of a fork.
func (s *Session) fork(rename func(string) string) {
	s.SessionID, s.StreamID = rename(s.SessionID), rename(s.StreamID)
	s.Runs, s.Checkpoints, s.CommittedAt, s.Usage, s.ResumeCount = nil, nil, 0, Usage{}, 0
	s.RemoteSequence, s.RemoteCalls, s.Stopped, s.ExpiresAt, s.Resync, s.Ephemeral = 0, nil, nil, 0, "", false
	s.StreamStatus = eventlog.StreamActive                       // later records of the log may change it
	if w := s.Workspace; w != nil && w.Status != WorkspaceGone { // the fork opens its own workspace from the snapshot
		w.Ref, w.Stale, w.Status, w.Error = nil, true, WorkspaceUnopened, ""
		w.OpenedAt, w.LastUsedAt = 0, 0
	}
	if s.Child != nil {
		s.Child.ParentSessionID = rename(s.Child.ParentSessionID)
	}
	begun := s.SubAgentTurns
	s.SubAgentTurns = nil
	for child, by := range begun {
		if s.SubAgentTurns == nil {
			s.SubAgentTurns = map[string]SubAgentTurn{}
		}
		s.SubAgentTurns[rename(child)] = by
	}
	for i := range s.Messages {
		s.Messages[i].Sequence = 0
	}
	s.Asides = s.Shown() // nothing goes back to before the fork's first record
	for i := range s.Asides {
		a := &s.Asides[i]
		a.Sequence, a.Session, a.Chunk = 0, rename(a.Session), renamed(a.Chunk, rename)
	}
	if s.Turn == nil {
		return
	}
	stop := s.Turn.Stop
	s.Turn.Before, s.Turn.Stop = nil, nil
	s.Status = SessionInterrupted
	switch {
	case s.Child == nil:
	case stop != nil && stop.Kind == fact.StopAbort: // a terminated sub-agent stays so
		s.Turn.Stop = stop
	default: // it continues when its parent does, whether or not the parent waits for it
		s.Turn.Stop = &Stop{Kind: fact.StopInterrupt, ByParent: true}
	}
	st := s.Turn.Step
	if st == nil {
		return
	}
	if st.Streamed = nil; !st.Recorded {
		st.Partial, st.Failure, st.Attempts, st.RunID, st.Discarded = nil, nil, 0, "", false
	}
	for i := range st.Calls {
		c := &st.Calls[i]
		c.Streamed = nil
		if c.Pending == nil {
			c.Started = false
		} else {
			c.Pending.Child = rename(c.Pending.Child)
		}
	}
}

// renamed returns an annotation's chunk with the sessions' ids in the fork, if clients see
// them.
func renamed(payload json.RawMessage, rename func(string) string) json.RawMessage {
	c, err := eventlog.DecodeChunk(payload)
	if err != nil { // there is none, or the state is damaged
		return payload
	}
	switch c := c.(type) {
	case *eventlog.SubAgentStart:
		c.AgentID, c.SubSessionID = rename(c.AgentID), rename(c.SubSessionID)
	case *eventlog.SubAgentEnd:
		c.AgentID, c.SubSessionID = rename(c.AgentID), rename(c.SubSessionID)
	case *eventlog.RunInterrupted:
		c.AgentID = rename(c.AgentID)
	default:
		return payload
	}
	if raw, err := eventlog.EncodeChunk(c); err == nil {
		return raw
	}
	return payload
}

// forked begins a session as a fork.
func (t *Tree) forked(r eventlog.Record, f *fact.SessionForked, before uint64) string {
	if before > 0 {
		return "a fork begins with its first record only"
	}
	var fork Tree
	if err := json.Unmarshal(f.State, &fork); err != nil {
		return fmt.Sprintf("fork: %v", err)
	}
	if fork.SessionID != f.SessionID || fork.Messages == nil || fork.CustomState.IsZero() {
		return "fork: it is no state of this session"
	}
	fork.Head, fork.Bytes = r.Sequence, t.Bytes
	fork.ForkedFrom = &Fork{SessionID: f.FromSessionID, Sequence: f.FromSequence, Record: r.Sequence, Edits: f.Edits}
	for _, s := range fork.Sessions() {
		s.CommittedAt = r.Sequence
		for i := range s.Messages {
			s.Messages[i].Sequence = r.Sequence
		}
		for i := range s.Asides {
			s.Asides[i].Sequence = r.Sequence
		}
		if turn := s.Turn; turn != nil {
			if st := turn.Step; st != nil && !turn.fits(r.Sequence, s.Messages) {
				return "fork: its turn does not fit"
			}
		}
	}
	fork.CreatedAt, fork.UpdatedAt = f.Timestamp, f.Timestamp
	*t = fork
	return ""
}
