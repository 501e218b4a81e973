package projector

import (
	"encoding/json"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// Edit changes the state that a fork begins with. If its target does not exist, it does
// nothing.
type Edit func(*Tree)

// EditMessage replaces the text of a user's message of the root. If the message has begun a
// turn that has no answer yet, the turn recalls memories again.
func EditMessage(i int, content string) Edit {
	return func(t *Tree) {
		if i < 0 || i >= len(t.Messages) || t.Messages[i].Role != RoleUser {
			return
		}
		t.Messages[i].Content = content
		if turn := t.Turn; turn != nil && turn.Recalled && turn.Number == t.Messages[i].Turn &&
			(turn.Step == nil || turn.Step.Number == 1 && !turn.Step.Recorded) {
			turn.Recalled, turn.Step = false, nil
			t.keepMessages(func(m Message) bool { return m.Turn != turn.Number || !m.recalled() })
		}
	}
}

// EditSystemPrompt gives the root its own system prompt.
func EditSystemPrompt(prompt string) Edit {
	return func(t *Tree) { t.SystemPrompt = &prompt }
}

// EditSnapshot gives a session of the tree another snapshot of its workspace's
// files.
func EditSnapshot(session string, snapshot json.RawMessage) Edit {
	return func(t *Tree) {
		if s := t.Get(session); s != nil {
			s.changeWorkspace(func(w *Workspace) { w.Snapshot = snapshot })
		}
	}
}

// EditResult gives a tool call of the tree another result, or a failure if problem is not
// empty. If the call waits for a client, the result becomes the client's answer; any
// other call without a result is finished with it.
func EditResult(call string, result json.RawMessage, problem, code string, at int64) Edit {
	return func(t *Tree) {
		s, i := t.ResultOf(call)
		owner, open := t.OpenCall(call)
		switch {
		case s != nil:
			m := &s.Messages[i]
			m.Result, m.Error, m.ErrorCode, m.Denial = result, problem, "", nil
			if problem != "" {
				m.ErrorCode = code
			}
			if open != nil {
				open.Result, open.Failed, open.Denial = result, problem != "", nil
			}
		case open == nil:
		case open.Pending != nil && open.Pending.Kind == fact.PendingClient:
			open.Answer = &Answer{Kind: fact.SubmitClientResult, Result: result, Error: problem, SubmittedAt: at}
		default:
			f := &fact.ToolResult{
				RunID: owner.Turn.RunID, StepID: owner.Turn.Step.ID, ToolCallID: call, ToolName: open.Name, Result: result,
				Base: fact.Base{Timestamp: at},
			}
			if problem != "" {
				f.Error, f.ErrorCode = problem, code
			}
			t.toolResult(owner, eventlog.Record{}, f)
		}
	}
}

// ResultOf returns where the result of a tool call is: the session of the tree
// and the index of its message. Without one the session is nil.
func (t *Tree) ResultOf(call string) (s *Session, message int) {
	for _, s := range t.Sessions() {
		for i, m := range s.Messages {
			if m.Role == RoleTool && m.ToolCallID == call {
				return s, i
			}
		}
	}
	return nil, 0
}
