package projector

import (
	"encoding/json"

	"github.com/helixd/helixd/eventlog/fact"
)

// State is a folded tree with derived values, under the names that the API uses. Clients
// read it; the fold does not store it.
type State struct {
	*Tree
	Suspension
	// ClientToolCallOwnership names the session that owns each pending call of
	// the tree.
	ClientToolCallOwnership map[string]string      `json:"clientToolCallOwnership,omitempty"`
	Children                map[string]*ChildState `json:"children,omitempty"`
}

// ChildState is the same for a sub-agent's session.
type ChildState struct {
	*Session
	Suspension
	RootSessionID   string `json:"rootSessionId"`
	ParentSessionID string `json:"parentSessionId"`
}

// Suspension is what a session waits for.
type Suspension struct {
	// PendingClientToolCalls are the session's own calls that wait for a person and have
	// no answer, by id. It is not empty exactly if the session awaits a client.
	PendingClientToolCalls map[string]PendingCall `json:"pendingClientToolCalls,omitempty"`
	// SuspensionContext is where the next run continues; nil: no run waits.
	SuspensionContext *SuspensionContext `json:"suspensionContext,omitempty"`
}

// PendingCall is a call that waits for a person (see docs/reference/protocol.md#suspension).
type PendingCall struct {
	ToolCallID     string           `json:"toolCallId"`
	ToolName       string           `json:"toolName"`
	Input          json.RawMessage  `json:"input"`
	Kind           fact.PendingKind `json:"kind"` // client or approval
	ApprovalID     string           `json:"approvalId,omitempty"`
	RunID          string           `json:"runId"` // the run whose model turn recorded the call
	StepID         string           `json:"stepId"`
	OwnerSessionID string           `json:"ownerSessionId"`     // the root or a sub-agent
	CreatedAt      int64            `json:"createdAt"`          // ms since the epoch
	Deadline       int64            `json:"deadline,omitempty"` // ms since the epoch; 0: none
}

// SuspensionContext is a step with unfinished calls, in a session whose run waits or was
// stopped while it waited.
type SuspensionContext struct {
	RunID     string         `json:"runId"` // the run that was suspended
	RunStatus fact.RunStatus `json:"runStatus"`
	StepID    string         `json:"stepId"`
	// ToolCallIDs wait for a person; AnsweredToolCallIDs have their answer,
	// which the next run uses; ChildSessionIDs are sub-agents that wait.
	ToolCallIDs         []string `json:"toolCallIds,omitempty"`
	AnsweredToolCallIDs []string `json:"answeredToolCallIds,omitempty"`
	ChildSessionIDs     []string `json:"childSessionIds,omitempty"`
	SuspendedAt         int64    `json:"suspendedAt"` // when the first of these calls was suspended, in ms since the epoch
}

// StateOf returns the state of a tree, with which it shares memory.
func StateOf(t *Tree) State {
	s := State{Tree: t, Suspension: t.Session.suspension()}
	for _, a := range t.AwaitedCalls() {
		if s.ClientToolCallOwnership == nil {
			s.ClientToolCallOwnership = map[string]string{}
		}
		s.ClientToolCallOwnership[a.Call.ID] = a.Session.SessionID
	}
	for id, child := range t.Children {
		if s.Children == nil {
			s.Children = map[string]*ChildState{}
		}
		if child == nil {
			continue
		}
		shown := &ChildState{Session: child, Suspension: child.suspension(), RootSessionID: t.SessionID, ParentSessionID: t.SessionID}
		if child.Child != nil && child.Child.ParentSessionID != "" {
			shown.ParentSessionID = child.Child.ParentSessionID
		}
		s.Children[id] = shown
	}
	return s
}

// Show describes a call that waits.
func (a Awaited) Show() PendingCall {
	c := PendingCall{
		ToolCallID: a.Call.ID, ToolName: a.Call.Name, Input: a.Call.Arguments, Kind: a.Call.Pending.Kind,
		ApprovalID: a.Call.Pending.ApprovalID, RunID: a.Call.RunID, OwnerSessionID: a.Session.SessionID,
		CreatedAt: a.Call.Pending.CreatedAt, Deadline: a.Call.Pending.Deadline,
	}
	if a.Session.Turn != nil && a.Session.Turn.Step != nil {
		c.StepID = a.Session.Turn.Step.ID
	}
	return c
}

func (s *Session) suspension() (w Suspension) {
	var at *SuspensionContext
	for c := range s.OpenCalls() {
		if c.Done || c.Pending == nil {
			continue
		}
		if at == nil {
			at = &SuspensionContext{StepID: s.Turn.Step.ID, SuspendedAt: c.Pending.CreatedAt}
		}
		at.SuspendedAt = min(at.SuspendedAt, c.Pending.CreatedAt)
		switch {
		case c.Pending.Kind == fact.PendingChild:
			at.ChildSessionIDs = append(at.ChildSessionIDs, c.Pending.Child)
		case c.Answer != nil:
			at.AnsweredToolCallIDs = append(at.AnsweredToolCallIDs, c.ID)
		default:
			at.ToolCallIDs = append(at.ToolCallIDs, c.ID)
			if w.PendingClientToolCalls == nil {
				w.PendingClientToolCalls = map[string]PendingCall{}
			}
			w.PendingClientToolCalls[c.ID] = Awaited{Session: s, Call: c}.Show()
		}
	}
	if run := s.CurrentRun(); at != nil && run != nil && !s.Running() {
		at.RunID, at.RunStatus = run.RunID, run.Status
		w.SuspensionContext = at
	}
	return w
}
