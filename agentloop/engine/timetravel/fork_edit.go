package timetravel

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/drive"
	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/engine/internal/request"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/agentloop/internal/shorten"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// MaxSystemPrompt is the longest own system prompt of a fork, in bytes.
const MaxSystemPrompt = 256 << 10

// ForkEdit says what a fork has otherwise than the other session had it: what
// would have happened if. Each member may be nil.
//
// Later records that depend on the edited part are left out: if the model has answered the
// edited message or tool result, the fork begins right
// before that answer, and if the turn has ended since, before its end. So
// the fork can be run on from there.
type ForkEdit struct {
	Message    *MessageEdit `json:"message,omitempty"`
	ToolResult *ResultEdit  `json:"toolResult,omitempty"`
	// SystemPrompt is used in place of the agent's, in the fork and in forks of
	// it, also by later turns; not by sub-agents.
	SystemPrompt *string `json:"systemPrompt,omitempty"`
}

// MessageEdit replaces the text of a user's message. Its files stay.
type MessageEdit struct {
	Content string `json:"content"`
	// Index is the message's, from 0; nil: the last one of a user. The loop's
	// own, hidden messages can't be edited.
	Index *int `json:"index,omitempty"`
}

// ResultEdit gives a tool call of the tree a result. One that waits for a client
// has got it as if it had been submitted, and must fit the tool's OutputSchema;
// any other one, also one that waits for an approval, is finished with it and is not
// executed. A call that waits for a sub-agent can't have one. Exactly one of
// Result and Error is set.
type ResultEdit struct {
	ToolCallID string          `json:"toolCallId"`
	Result     json.RawMessage `json:"result,omitempty"`
	Error      string          `json:"error,omitempty"`
}

func (e ForkEdit) none() bool { return e == ForkEdit{} }

func badEdit(field, reason string) error {
	return &eventlog.ValidationError{Field: "edit." + field, Reason: reason}
}

// check refuses what no session takes.
func (e ForkEdit) check() error {
	if m := e.Message; m != nil && !utf8.ValidString(m.Content) {
		return badEdit("message.content", "must be valid UTF-8")
	}
	if p := e.SystemPrompt; p != nil {
		switch {
		case len(*p) > MaxSystemPrompt:
			return badEdit("systemPrompt", fmt.Sprintf("has more than %d bytes", MaxSystemPrompt))
		case !utf8.ValidString(*p):
			return badEdit("systemPrompt", "must be valid UTF-8")
		}
	}
	if r := e.ToolResult; r != nil {
		err := request.CheckResult(r.ToolCallID, r.Result, r.Error)
		if problem, ok := errors.AsType[*eventlog.ValidationError](err); ok {
			return badEdit("toolResult."+problem.Field, problem.Reason)
		}
		if eventlog.Depth(r.Result) > drive.MaxArgumentDepth {
			return badEdit("toolResult.result", "is nested too deep")
		}
	}
	return nil
}

// digest distinguishes edits.
func (e ForkEdit) digest() string {
	raw, _ := json.Marshal(e) // it has been checked
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16])
}

// same reports whether a fork was made with these edits.
func (e ForkEdit) same(made *fact.ForkEdits) bool {
	if made == nil || e.none() {
		return made == nil && e.none()
	}
	return made.Digest == e.digest()
}

// edited returns the state with which a fork of then begins that is edited:
// then, or one before it; what is to be done with that, and how that is called.
func (h *History) edited(ctx context.Context, then *projector.Tree, e ForkEdit) (*projector.Tree, []projector.Edit, *fact.ForkEdits, error) {
	if e.none() {
		return then, nil, nil, nil
	}
	names := &fact.ForkEdits{Digest: e.digest()}
	var edits []projector.Edit
	if m := e.Message; m != nil {
		i, err := messageToEdit(then, m)
		if err != nil {
			return nil, nil, nil, err
		}
		if then, err = h.beforeAnswer(ctx, then, &then.Session, i); err != nil {
			return nil, nil, nil, asEdit(err, "message")
		}
		names.Message = &i
		edits = append(edits, projector.EditMessage(i, m.Content))
	}
	if r := e.ToolResult; r != nil {
		var err error
		if then, err = h.beforeUse(ctx, then, r.ToolCallID); err != nil {
			return nil, nil, nil, asEdit(err, "toolResult")
		}
		if err := h.checkEdited(then, r); err != nil {
			return nil, nil, nil, err
		}
		if names.Message != nil && *names.Message >= len(then.Messages) {
			return nil, nil, nil, badEdit("message", "comes after the result that is edited, and goes with what followed from that")
		}
		names.ToolCallID = r.ToolCallID
		edits = append(edits, projector.EditResult(r.ToolCallID, r.Result, shorten.ErrorIf(r.Error), agentloop.CodeToolFailed, h.clock.Millis()))
	}
	if p := e.SystemPrompt; p != nil {
		names.SystemPrompt = true
		edits = append(edits, projector.EditSystemPrompt(*p))
	}
	return then, edits, names, nil
}

func asEdit(err error, member string) error {
	if problem, ok := errors.AsType[*eventlog.ValidationError](err); ok && problem.Field == "messageIndex" {
		return badEdit(member, problem.Reason)
	}
	return err
}

// messageToEdit returns the index of a user's message.
func messageToEdit(t *projector.Tree, m *MessageEdit) (int, error) {
	theirs := func(m projector.Message) bool { return m.Role == projector.RoleUser && !decide.OwnMessage(m.Metadata) }
	i := len(t.Messages) - 1
	if m.Index != nil {
		if i = *m.Index; i < 0 || i >= len(t.Messages) || !theirs(t.Messages[i]) {
			return 0, badEdit("message.index", "is no user's message there")
		}
	}
	for ; i >= 0 && !theirs(t.Messages[i]); i-- {
	}
	switch {
	case i < 0:
		return 0, badEdit("message", "there is no user's message there")
	case m.Content == "" && len(t.Messages[i].Files) == 0:
		return 0, badEdit("message.content", "must not be empty without files")
	}
	return i, nil
}

// beforeAnswer returns the state right before the model's next answer after a
// message of a session: t itself if there is none.
func (h *History) beforeAnswer(ctx context.Context, t *projector.Tree, s *projector.Session, message int) (*projector.Tree, error) {
	next := slices.IndexFunc(s.Messages[message+1:], func(m projector.Message) bool { return m.Role == projector.RoleAssistant })
	if next < 0 {
		return t, nil
	}
	seq, err := h.behindMessage(ctx, t, s.Messages[:message+next+2], message+next)
	if err != nil {
		return nil, err
	}
	return h.states.At(ctx, t.SessionID, seq)
}

// beforeUse returns the state in which a call's result is there, if it is in t,
// and nothing was made of it.
func (h *History) beforeUse(ctx context.Context, t *projector.Tree, call string) (*projector.Tree, error) {
	s, i := t.ResultOf(call)
	if s == nil {
		return t, nil
	}
	result := s.Messages[i].Sequence
	then, err := h.beforeAnswer(ctx, t, s, i)
	if err != nil || then != t || s.Turn != nil {
		return then, err
	}
	for _, cp := range s.Checkpoints { // the turn has ended with this step
		if cp.StreamSequence > result {
			return h.states.At(ctx, t.SessionID, cp.StreamSequence)
		}
	}
	return t, nil
}

// checkEdited refuses a result for a call that can't have one.
func (h *History) checkEdited(t *projector.Tree, r *ResultEdit) error {
	if s, i := t.ResultOf(r.ToolCallID); s != nil {
		return h.checkEditedOutput(s, s.Messages[i].ToolName, r)
	}
	owner, call := t.OpenCall(r.ToolCallID)
	switch {
	case call == nil:
		return badEdit("toolResult.toolCallId", "is no call of the session there that has, or waits for, a result")
	case call.Pending != nil && call.Pending.Kind == fact.PendingChild:
		return badEdit("toolResult.toolCallId", "is a call that waits for a sub-agent: give its own call a result")
	case call.Pending == nil:
		return h.checkEditedOutput(owner, call.Name, r)
	case call.Pending.Kind != fact.PendingClient || r.Error != "":
		return nil
	}
	if h.requests.Agents.Defs()[owner.AgentType].CheckResult(call.Name, r.Result) != nil {
		return badEdit("toolResult.result", "does not fit the tool's output schema")
	}
	return nil
}

// checkEditedOutput refuses a result that would be the session's output and
// can't be.
func (h *History) checkEditedOutput(s *projector.Session, tool string, r *ResultEdit) error {
	def := h.requests.Agents.Defs()[s.AgentType]
	if def == nil || r.Error != "" || def.CheckOutput(tool, r.Result) == nil {
		return nil
	}
	return badEdit("toolResult.result", "does not fit the agent's output schema")
}

// runFork returns the records that have a fork run on, and the run.
func (h *History) runFork(ctx context.Context, t *projector.Tree, req ForkRequest) (facts []record.Draft, run string, err error) {
	mode, conversation := fact.ModeContinue, req.Edit.Message != nil || req.Edit.ToolResult != nil
	switch {
	case t.Turn == nil && len(req.Messages) == 0 && !conversation:
		return nil, "", agentloop.ErrNothingToResume
	case t.Turn == nil:
		mode = fact.ModeStart
	case len(req.Messages) > 0:
		mode = fact.ModeWithMessage
		facts = h.clock.AbandonAll(t)
	}
	begin := h.requests.NewRun(ctx, t.SessionID, mode, req.Messages, fact.RunOptions{})
	run = begin[0].Run
	if facts = append(facts, begin...); mode != fact.ModeStart {
		facts = append(facts, h.clock.Resumed(&t.Session, run, mode))
	}
	return facts, run, nil
}
