package agui

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/projector"
)

// maxLooks is how often begin reads its session again because other requests have changed it
// meanwhile.
const maxLooks = 4

// begin begins the run that a client asks for, or finds it: the same request again, and one that
// brings nothing new, begin none. The loop checks the state again when it appends: if another
// request was faster, begin chooses again.
func (s *Routes) begin(ctx context.Context, agent string, in input) (*projector.Run, error) {
	for look := 1; ; look++ {
		run, err := s.choose(ctx, agent, in)
		switch {
		case !overtaken(err):
			return run, err
		case look == maxLooks && errors.Is(err, agentloop.ErrMessageKnown):
			return nil, invalid("messages: hold nothing new")
		case look == maxLooks:
			return nil, err
		}
	}
}

// overtaken reports whether an error means that the session's state has changed, so that the
// request may be answered otherwise.
func overtaken(err error) bool {
	return slices.ContainsFunc([]error{
		agentloop.ErrMessageKnown, agentloop.ErrNotLast, agentloop.ErrAlreadyCompleted, agentloop.ErrNothingToResume,
	}, func(target error) bool { return errors.Is(err, target) })
}

// choose takes the path that fits the session's state.
func (s *Routes) choose(ctx context.Context, agent string, in input) (*projector.Run, error) {
	t, err := s.states.Head(ctx, in.thread)
	if err != nil && !errors.Is(err, eventlog.ErrSessionNotFound) {
		return nil, err
	}
	if err != nil {
		t = nil
	}
	client, err := eventlog.Marshal(in.kept)
	if err != nil {
		return nil, err
	}
	options := fact.RunOptions{Name: in.run, Instructions: in.instructions, Tools: in.tools, Client: client}
	if t != nil {
		if !auth.CallerOf(ctx).MayUse(t) { // since it was authorized
			return nil, auth.ErrForbidden
		}
		if run := t.RunNamed(in.run); run != nil {
			if t.AgentType != agent {
				return nil, agentloop.ErrOtherAgent
			}
			return run, nil
		}
	}
	switch {
	case t == nil || t.Turn == nil:
		return s.execute(ctx, agent, t, in, options)
	case t.AgentType != agent:
		return nil, agentloop.ErrOtherAgent
	}
	return s.resume(ctx, t, in, options)
}

// execute begins the first run of a thread, or its next turn.
func (s *Routes) execute(ctx context.Context, agent string, t *projector.Tree, in input, options fact.RunOptions) (*projector.Run, error) {
	caller := auth.CallerOf(ctx)
	req := engine.StartRequest{
		SessionID: in.thread, AgentType: agent, UserID: caller.User, Tenant: caller.Tenant,
		State: in.state, MergeState: in.state, Options: options,
		Existing: t != nil, // it may have been erased since, and the request has only what t lacks
	}
	if t == nil {
		req.Messages = in.all()
	} else {
		req.Messages = in.newTo(t)
	}
	if err := in.checkResume(t); err != nil {
		return nil, err
	}
	spoken := slices.ContainsFunc(req.Messages, func(m agentloop.Input) bool { return m.Added == nil })
	if !spoken {
		if t != nil && t.AgentType == agent && t.CurrentRun() != nil {
			return t.CurrentRun(), nil // the client repeats what was answered
		}
		return nil, invalid("messages: must have a message of the user")
	}
	h, err := s.loop.Execute(ctx, req)
	if err != nil {
		return nil, err
	}
	return s.found(ctx, in.thread, h.RunID)
}

// resume continues a turn that waits, or was interrupted.
func (s *Routes) resume(ctx context.Context, t *projector.Tree, in input, options fact.RunOptions) (*projector.Run, error) {
	answers, err := in.answersTo(t)
	if err != nil {
		return nil, err
	}
	messages := in.newTo(t)
	last := t.CurrentRun() // nil: the thread is a fork
	if len(messages) == 0 && len(answers) == 0 {
		switch executing := s.loop.Executing(ctx, t) || justBegun(t); {
		case !executing && len(t.AwaitedCalls()) == 0:
			// If the run has ended or waits since t, it needs no other run.
			if now, err := s.states.Head(ctx, in.thread); err != nil || now.Head != t.Head {
				return nil, cmp.Or(err, agentloop.ErrNotLast)
			}
		case last == nil:
			return nil, invalid("messages: must have a message of the user, or the result of a tool that waits")
		default:
			return last, nil
		}
	}
	req := engine.ResumeRequest{SessionID: in.thread, Messages: messages, Answers: answers, MergeState: in.state, Options: options}
	if last != nil && !last.Deleted {
		req.After = last.RunID
	}
	begun, err := s.loop.Resume(ctx, req)
	if err != nil {
		return nil, err
	}
	return s.found(ctx, in.thread, begun.RunID)
}

// handover is how long a run that was begun counts as one that a node is about to drive. After
// that, its node has died.
const handover = 2 * time.Second

// justBegun reports whether another request has begun the session's run, and no node has claimed
// it yet.
func justBegun(t *projector.Tree) bool {
	run := t.CurrentRun()
	return t.Running() && (t.Claim == nil || t.Claim.Sequence <= run.StartSequence) && time.Since(time.UnixMilli(run.StartedAt)) < handover
}

func (s *Routes) found(ctx context.Context, session, run string) (*projector.Run, error) {
	t, err := s.states.Head(ctx, session)
	if err != nil {
		return nil, err
	}
	if found := t.RunOf(run); found != nil {
		return found, nil
	}
	return nil, eventlog.ErrSessionNotFound
}

// all returns the messages with which a new thread begins: clients may bring a conversation
// along.
func (in *input) all() (all []agentloop.Input) {
	names := map[string]string{}
	for _, m := range in.messages {
		switch {
		case m.role == "tool":
			name, known := names[m.result.ToolCallID]
			if !known {
				continue
			}
			all = append(all, agentloop.Input{Added: &fact.MessageAdded{
				Role: fact.AddedTool, ToolCallID: m.result.ToolCallID, ToolName: name, Result: m.result.Result, Error: m.result.Error, MessageID: m.id,
			}})
		case m.in.Added == nil && m.in.Content == "" && len(m.in.Files) == 0, m.role == "assistant" && len(m.called) == 0:
		default:
			for _, p := range m.called {
				if p.ToolCall != nil {
					names[p.ToolCall.ID] = p.ToolCall.Name
				}
			}
			all = append(all, m.in)
		}
	}
	return all
}

// ours are the ids of messages that helixd gives.
var ours = regexp.MustCompile(`^(turn-[0-9]+-step-[0-9]+|` + resultPrefix + `.+|` + callPrefix + `.+)$`)

// newTo returns the messages that the session does not have: those of the user and the system
// that come after the last message of the assistant or a tool that it has or had.
func (in *input) newTo(t *projector.Tree) (all []agentloop.Input) {
	known := map[string]bool{}
	for _, m := range messagesOf(t) {
		known[m["id"].(string)] = true
	}
	from := 0
	for i, m := range in.messages {
		if had := known[m.id] || ours.MatchString(m.id) || m.role == "tool"; had && m.role != "user" && m.role != "system" && m.role != "developer" {
			from = i + 1
		}
	}
	for _, m := range in.messages[from:] {
		switch m.role {
		case "user", "system", "developer":
			if !known[m.id] && (m.in.Added != nil || m.in.Content != "" || len(m.in.Files) > 0) {
				all = append(all, m.in)
			}
		}
	}
	if !slices.ContainsFunc(all, func(m agentloop.Input) bool { return m.Added == nil }) {
		return nil // a message of the system asks for no run
	}
	return all
}

// answersTo returns the answers to calls that wait: the client's results, and its decisions
// about interrupts, which must be about all that are open.
func (in *input) answersTo(t *projector.Tree) (answers []engine.Submission, err error) {
	decided := map[string]decision{}
	for _, d := range in.resume {
		decided[d.interrupt] = d
	}
	results := map[string]engine.Submission{}
	for _, m := range in.messages {
		if _, had := results[m.result.ToolCallID]; m.role == "tool" && !had {
			results[m.result.ToolCallID] = m.result
		}
	}
	var missing []string
	for _, a := range t.AwaitedCalls() {
		call, id := a.Call.ID, a.Call.Pending.ApprovalID
		if a.Call.Pending.Kind == fact.PendingApproval {
			d, ok := decided[id]
			if !ok {
				missing = append(missing, id)
				continue
			}
			answers = append(answers, engine.Submission{
				SessionID: in.thread, ToolCallID: call, ApprovalID: id, Kind: fact.SubmitApproval, Approved: d.approved, Reason: d.reason,
			})
			continue
		}
		if sub, ok := results[call]; ok {
			sub.SessionID = in.thread
			answers = append(answers, sub)
		}
	}
	if len(missing) > 0 {
		return nil, invalid("resume: must answer the open interrupts %s", strings.Join(missing, ", "))
	}
	return answers, in.checkResume(t)
}

// checkResume refuses decisions about calls that the session does not have. What was decided
// before stays so.
func (in *input) checkResume(t *projector.Tree) error {
	if len(in.resume) == 0 {
		return nil
	}
	calls := map[string]bool{}
	if t != nil {
		for id := range t.CallIDs() {
			calls[id] = true
		}
	}
	for _, d := range in.resume {
		if _, call, _ := strings.Cut(d.interrupt, "::"); !calls[call] {
			return invalid("resume: there is no interrupt %q", d.interrupt)
		}
	}
	return nil
}
