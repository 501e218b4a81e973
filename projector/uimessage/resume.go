package uimessage

import (
	"cmp"
	"encoding/json"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// CallAnswer is a person's answer to a call.
type CallAnswer struct {
	Failed bool // it is an error, or none has come in time
}

// Answered returns the calls of a tree that waited for a person and have their
// answer, by id.
func Answered(t *projector.Tree) map[string]CallAnswer {
	answered := map[string]CallAnswer{}
	for _, s := range t.Sessions() {
		for _, m := range s.Messages {
			if m.AnsweredAs == fact.PendingClient || m.AnsweredAs == fact.PendingApproval {
				answered[m.ToolCallID] = CallAnswer{Failed: m.Error != ""}
			}
		}
		for c := range s.OpenCalls() {
			if a := cmp.Or(c.Answer, c.Approval); a != nil && !c.Done {
				answered[c.ID] = CallAnswer{Failed: a.Result == nil}
			}
		}
	}
	return answered
}

// Resync is the part that says to a client which resumes from a sequence to load
// the snapshot. It is not in the log (see docs/reference/protocol.md#chat-streams). Its reason is
// that of the session's last stored stream_resync, or crash_recovery. It describes the last checkpoint
// that the client's records contain; without one its fields are "" and 0.
func Resync(t *projector.Tree, from uint64) Frame {
	chunk := &eventlog.StreamResync{
		Reason: cmp.Or(t.Resync, eventlog.ResyncCrashRecovery),
		Base:   eventlog.Base{AgentID: t.SessionID, AgentType: t.AgentType, Timestamp: t.UpdatedAt, Step: t.StepCount},
	}
	if c := t.CheckpointAt(from); c != nil {
		chunk.CheckpointID, chunk.StepCount, chunk.MessageCount, chunk.FromSequence = c.ID, c.StepCount, c.MessageCount, c.StreamSequence
	}
	raw, err := eventlog.EncodeChunk(chunk)
	if err != nil { // a session without an agent
		raw = json.RawMessage("{}")
	}
	return Frame(encode(Data{Type: "data-stream-resync", Data: raw, Transient: true}))
}

// Earlier returns the calls of the messages before the last user message, by
// id: of the root, and of its sub-agents those that the user was asked about.
func Earlier(t *projector.Tree) map[string]bool {
	last := -1
	for i := range t.Messages {
		if m := &t.Messages[i]; m.Role == projector.RoleUser && !m.Hidden() {
			last = i
		}
	}
	earlier := map[string]bool{}
	for i := range max(last, 0) {
		for _, p := range t.Messages[i].Parts {
			if p.ToolCall != nil {
				earlier[p.ToolCall.ID] = true
			}
		}
	}
	for _, a := range t.Asides {
		if a.CallID != "" && a.After < last {
			earlier[a.CallID] = true
		}
	}
	return earlier
}
