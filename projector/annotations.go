package projector

import (
	"encoding/json"
	"regexp"
	"slices"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// Annotation is content of an assistant's message that is not of the model's answer: what the
// stream shows with it, so that a client that reads the message later finds it too (see
// docs/reference/protocol.md#chat-streams).
type Annotation struct {
	// After is the index of the message, a user's or an assistant's, that it
	// follows; -1: it comes before all.
	After    int    `json:"after"`
	Turn     int    `json:"turn"`
	Sequence uint64 `json:"sequence"` // of the record that it comes from

	// Chunk is the chunk's payload: a custom event, an output, the beginning or
	// the end of a sub-agent, an interruption.
	Type  string          `json:"type,omitempty"`
	Chunk json.RawMessage `json:"chunk,omitempty"`
	// EventID is the id in a custom event's data: a later event of the same name and id
	// replaces it where annotations are shown, see [Session.Shown].
	EventID string `json:"eventId,omitempty"`

	// Run and Call are the record's labels.
	Run  string `json:"run,omitempty"`
	Call string `json:"call,omitempty"`

	// Partial is used instead of the above: the text of a model whose run failed. Clients
	// have it; the model will not see it.
	Partial []PartialPart `json:"partial,omitempty"`

	// Session and CallID are used instead of the above: a sub-agent's call that waits for
	// the user, or has waited. The user answers it in the root's conversation.
	Session string `json:"session,omitempty"`
	CallID  string `json:"callId,omitempty"`
}

// ownParts are the names of helixd's own data parts (see docs/reference/protocol.md#chat-streams).
var ownParts = map[string]bool{
	"state-patch": true, "output": true, "subagent-start": true, "subagent-end": true, "subagent-chunk": true,
	"stream-resync": true, "run-interrupted": true, "run-resumed": true, "run-paused": true, "executor-superseded": true,
	"checkpoint-created": true, "step-committed": true, "step-discarded": true, "error": true, "custom": true,
}

var partName = regexp.MustCompile(`^[a-z0-9-]+$`)

// PartName reports whether a custom event of this name has its own data part; see
// docs/reference/protocol.md#chat-streams.
func PartName(name string) bool { return partName.MatchString(name) && !ownParts[name] }

// EventMarks returns the members id and transient of a custom event's data. A later event with
// the same id replaces it. A transient one is only for clients that are connected.
func EventMarks(name string, data json.RawMessage) (id string, transient bool) {
	var members map[string]json.RawMessage
	if !PartName(name) || json.Unmarshal(data, &members) != nil {
		return "", false
	}
	if json.Unmarshal(members["id"], &id) != nil {
		id = ""
	}
	return id, string(members["transient"]) == "true"
}

// annotate keeps a chunk of the open turn.
func (s *Session) annotate(r eventlog.Record, c eventlog.Chunk) {
	a := Annotation{Sequence: r.Sequence, Type: c.Type(), Chunk: r.Payload, Run: r.Run, Call: r.Call}
	switch c := c.(type) {
	case *eventlog.CustomEvent:
		transient := false
		if a.EventID, transient = EventMarks(c.EventName, c.Data); transient {
			return
		}
	case *eventlog.Output, *eventlog.SubAgentStart, *eventlog.SubAgentEnd, *eventlog.RunInterrupted:
	default:
		return
	}
	if _, end := c.(*eventlog.SubAgentEnd); end && s.Turn == nil && s.TurnCount > 0 { // it ended after the turn
		s.Asides = append(s.Asides, s.placed(a))
		return
	}
	s.keep(a)
}

// Shown returns the annotations as clients see them. Of the custom events of a message
// that have the same name and id, it has the place of the first and the data of the last.
// The session keeps all of them, since a truncation can hide the later ones again.
func (s *Session) Shown() []Annotation {
	type event struct {
		turn, begins int // the assistant's message
		name, id     string
	}
	begins, next := -1, 0 // the user's message that the assistant's answers
	places := map[event]int{}
	shown := make([]Annotation, 0, len(s.Asides))
	for _, a := range s.Asides {
		for ; next <= a.After && next < len(s.Messages); next++ {
			if m := &s.Messages[next]; m.Role == RoleUser && !m.Hidden() {
				begins = next
			}
		}
		if a.EventID != "" {
			of := event{a.Turn, begins, eventName(a.Chunk), a.EventID}
			if i, known := places[of]; known {
				shown[i].Chunk = a.Chunk
				continue
			}
			places[of] = len(shown)
		}
		shown = append(shown, a)
	}
	return shown
}

// eventName returns the name in a custom event's payload.
func eventName(payload json.RawMessage) string {
	var chunk struct {
		EventName string `json:"eventName"`
	}
	if json.Unmarshal(payload, &chunk) != nil { // the state is damaged
		return ""
	}
	return chunk.EventName
}

func (s *Session) keep(a Annotation) {
	if s.Turn != nil {
		s.Asides = append(s.Asides, s.placed(a))
	}
}

// placed sets the place of a in the last turn.
func (s *Session) placed(a Annotation) Annotation {
	a.Turn, a.After = s.TurnCount, len(s.Messages)-1
	for a.After >= 0 && s.Messages[a.After].Role == RoleTool {
		a.After--
	}
	return a
}

// keepPartial keeps the open turn's text that was streamed but not recorded, because the
// turn fails.
func (s *Session) keepPartial(seq uint64) {
	if s.Turn == nil || s.Turn.Step == nil || s.Turn.Step.Recorded || s.Turn.Step.Streamed == nil {
		return
	}
	a := s.placed(Annotation{Sequence: seq, Partial: s.Turn.Step.Partial})
	if a.Partial == nil {
		a.Partial = []PartialPart{}
	}
	at := len(s.Asides)
	for at > 0 && s.Asides[at-1].Sequence > s.Turn.Step.Streamed.From && s.Asides[at-1].After == a.After {
		at-- // it was streamed before that
	}
	s.Asides = slices.Insert(slices.Clip(s.Asides), at, a) // in a new list: clones share the old one
}

// asks records in the root that a call of one of its sub-agents waits for the user.
func (t *Tree) asks(r eventlog.Record, f *fact.CallSuspended) {
	if r.Agent == t.SessionID || f.Kind == fact.PendingChild {
		return
	}
	known := func(a Annotation) bool { return a.Session == r.Agent && a.CallID == f.ToolCallID }
	if slices.ContainsFunc(t.Asides, known) {
		return
	}
	a := Annotation{Sequence: r.Sequence, Session: r.Agent, CallID: f.ToolCallID}
	t.Asides = append(t.Asides, t.placed(a)) // also after the root's turn: the call may wait longer
}

// truncateAnnotations removes the annotations that a range truncates.
func (s *Session) truncateAnnotations(g eventlog.Range) {
	covered := func(a Annotation) bool {
		return a.Type != "" && g.Covers(eventlog.Record{Sequence: a.Sequence, Entry: eventlog.Entry{Envelope: eventlog.Envelope{
			Kind: eventlog.KindChunk, Type: a.Type, Agent: s.SessionID, Run: a.Run, Call: a.Call,
		}}})
	}
	if slices.ContainsFunc(s.Asides, covered) {
		s.Asides = slices.DeleteFunc(slices.Clone(s.Asides), covered) // in a new list: clones share the old one
	}
}
