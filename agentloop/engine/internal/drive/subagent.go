package drive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/backlog"
	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/agentloop/internal/plan"
	"github.com/helixd/helixd/agentloop/internal/shorten"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// startChild begins a sub-agent's session for a call, all in one append.
func (t *task) startChild(ctx context.Context, c *toolCall, call projector.Call, sub *plan.SubAgent) error {
	id := projector.ChildID(t.session, projector.InfixCall, c.ID)
	t.beforeExecution(ctx, backlog.BeforeSubAgent(sub.Agent, call))
	code, problem := t.cantSpawn(id)
	if problem != "" {
		return t.dispatchFailed(ctx, c, call, code, problem)
	}
	// A reader that looks while this is being folded sees the session before the
	// call that waits for it.
	facts := append(c.approved(call),
		c.start(call),
		c.subAgentStart(sub.Agent, id),
	)
	facts = append(facts, t.spawn(id, sub.Def, taskOf(call.Arguments), fact.SubSession{
		ParentSessionID: t.session, CallID: c.ID, Mode: fact.SubSessionEphemeral,
	})...)
	return t.append(ctx, append(facts, c.awaits(id, sub.Timeout))...)
}

// cantSpawn returns why a sub-agent's session can't be made.
func (t *task) cantSpawn(id string) (code, problem string) {
	t.look(func(*projector.Session) {
		switch old := t.tree.Get(id); {
		case t.tree.Depth(t.session) >= agentloop.MaxDepth:
			code, problem = agentloop.CodeMaxDepth, fmt.Sprintf("sub-agents may be nested %d deep", agentloop.MaxDepth)
		case old != nil && (old.TurnCount > 0 || old.Child == nil || old.Child.Remote): // and it may not be a remote one
			code, problem = agentloop.CodeToolFailed, "the sub-agent's session exists"
		}
	})
	return code, problem
}

// dispatchFailed says to the model that a sub-agent could not be started; its
// siblings continue.
func (t *task) dispatchFailed(ctx context.Context, c *toolCall, call projector.Call, code, problem string) error {
	c.log(slog.LevelError, logDispatchFailed, "code", code)
	problem = shorten.Error(problem)
	var facts []record.Draft
	if call.Pending == nil || decide.Gated(call) {
		facts = append(c.approved(call), c.start(call))
	}
	return t.append(ctx, append(append(facts, c.outputError(problem)), c.ended(nil, code, problem)...)...)
}

// spawn returns the records that begin a sub-agent's session and its first
// run.
func (t *task) spawn(id string, def *plan.Agent, message string, child fact.SubSession) []record.Draft {
	base := t.host.FactBase(id)
	facts := []record.Draft{{Fact: &fact.SessionCreated{
		AgentType: def.Name, State: def.InitialState, Child: &child, Base: base,
	}}}
	facts = append(facts, t.host.NewRun(id, fact.ModeStart, []agentloop.Input{{Content: message}})...)
	return record.About(id, facts)
}

// taskOf returns a sub-agent's first message: the member message if that is
// there is no other member, otherwise the JSON.
func taskOf(args json.RawMessage) string {
	var members map[string]json.RawMessage
	var message string
	if json.Unmarshal(args, &members) == nil && len(members) == 1 && json.Unmarshal(members["message"], &message) == nil {
		return message
	}
	return string(args)
}

// resumeChild begins a further run of the session.
func (t *task) resumeChild(ctx context.Context) error {
	facts := t.host.NewRun(t.session, fact.ModeContinue, nil)
	t.look(func(s *projector.Session) {
		facts = append(facts, t.host.Resumed(s, facts[0].Run, fact.ModeContinue))
	})
	return t.append(ctx, facts...)
}

// closeChild records the output of a sub-agent as the result of the call that waits for it. If
// the output does not fit into a record, the call fails.
func (t *task) closeChild(ctx context.Context, c *toolCall, call projector.Call) error {
	id := call.Pending.Child
	result, code, message := t.childOutcome(id)
	facts := t.childEnd(c, id, result, message)
	if t.def.Companion[c.ToolName] != nil { // that it failed is an answer, too
		result, code, message = t.childStatus(id), "", ""
	}
	err := t.append(ctx, append(facts, c.ended(result, code, shorten.ErrorIf(message))...)...)
	if !errors.Is(err, eventlog.ErrTooLarge) {
		return err
	}
	code, message = agentloop.CodeToolFailed, "the sub-agent's output is too large to be a call's result"
	facts = t.childEnd(c, id, nil, message)
	return t.append(ctx, append(facts, c.ended(nil, code, message)...)...)
}

// childOutcome is what has come of a sub-agent's last turn.
func (t *task) childOutcome(id string) (result json.RawMessage, code, message string) {
	code, message = agentloop.CodeToolFailed, "the sub-agent's session is not there"
	t.look(func(*projector.Session) {
		child := t.tree.Get(id)
		switch {
		case child == nil:
		case child.Status == projector.SessionCompleted:
			result, code, message = child.Output, "", ""
		case child.Error != nil:
			code, message = child.Error.Code, child.Error.Message
		}
	})
	return result, code, message
}

// childEnd notifies clients of the end of a sub-agent's turn that a call has begun
// and waits for. If another call has begun it, there are no records.
func (t *task) childEnd(c *toolCall, id string, result json.RawMessage, problem string) []record.Draft {
	typ, begun := strings.TrimPrefix(c.ToolName, agentloop.SubAgentPrefix), true
	t.look(func(s *projector.Session) {
		if child := t.tree.Get(id); child != nil && child.AgentType != "" {
			typ = child.AgentType
		}
		begun = !plan.IsCompanion(c.ToolName) || s.SubAgentTurns[id].CallID == c.ID
	})
	if !begun {
		return nil
	}
	return []record.Draft{c.chunk(&eventlog.SubAgentEnd{
		SubAgentType: typ, SubSessionID: id, CallID: c.ID, Result: endResult(result, problem), Base: c.base(),
	})}
}

// childEndLeft is childEnd for a call that ends without the sub-agent. A
// persistent one whose turn continues reports its end itself.
func (t *task) childEndLeft(c *toolCall, id, problem string) []record.Draft {
	if !plan.IsCompanion(c.ToolName) {
		return t.childEnd(c, id, nil, problem)
	}
	over := false
	t.look(func(*projector.Session) {
		child := t.tree.Get(id)
		over = child == nil || child.Turn == nil
	})
	if !over {
		return nil
	}
	result, _, problem := t.childOutcome(id)
	return t.childEnd(c, id, result, problem)
}

// turnEnd notifies the clients of a sub-agent's parent that a turn of the sub-agent
// has ended. If the call that began the turn waits for it, the call does so.
func (t *task) turnEnd(result json.RawMessage, problem string) (facts []record.Draft) {
	t.look(func(s *projector.Session) {
		if s.Child == nil {
			return
		}
		parent := t.tree.Get(s.Child.ParentSessionID)
		if parent == nil {
			return
		}
		begun, open := parent.SubAgentTurns[s.SessionID]
		if !open || decide.AwaitsBy(parent, s.SessionID, begun.CallID) {
			return
		}
		base := t.host.ChunkBase(parent)
		base.Step = begun.Step
		facts = []record.Draft{{Run: t.runID, Call: begun.CallID, Chunk: &eventlog.SubAgentEnd{
			SubAgentType: s.AgentType, SubSessionID: s.SessionID, CallID: begun.CallID, Result: endResult(result, problem), Base: base,
		}}}
	})
	return facts
}

// endResult is the result of a subagent_end: the output, or why there is none.
func endResult(output json.RawMessage, problem string) json.RawMessage {
	if problem != "" {
		return decide.Encoded(map[string]string{"error": problem})
	}
	return output
}
