package projector

import (
	"encoding/json"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector/durable"
	"github.com/helixd/helixd/projector/jsondoc"
)

// Version is the version of the fold. A state that another version folded is continued
// only if retention has removed the records that it is of.
const Version = 17

// Tree is the state of a session tree at a sequence. The embedded Session is
// the root. The zero value is the state before the first record.
type Tree struct {
	Session
	// Head is the sequence of the last record in the state.
	Head uint64 `json:"head"`
	// Bytes is the total size of the payloads of all records so far.
	Bytes int64 `json:"bytes,omitzero"`
	// Children are the sessions of sub-agents, by id.
	Children map[string]*Session `json:"children,omitempty"`
	// AskedAt is when a run was last requested or claimed, or something submitted, in ms
	// since the epoch. Deadlines are judged by it, since the times of other records come
	// from their producers.
	AskedAt int64 `json:"askedAt,omitempty"`
	// Claim is the last claim of the tree.
	Claim *Claim `json:"claim,omitempty"`
	// Appends are the last appends of outside producers that had an idempotency key;
	// OldKeys are the keys before those.
	Appends Appends `json:"appends,omitzero"`
	OldKeys OldKeys `json:"oldKeys,omitempty"`
	// Durable is the state of a durable stream; nil: the log is a session's.
	Durable *durable.Stream `json:"durable,omitempty"`
	// Dead are the ranges of truncated records. Saved folds have the field's name.
	Dead eventlog.Truncations `json:"dead,omitempty"`
	// PatchWork is how many bytes of [MaxPatchWork] the patches have used that later
	// records have not restored.
	PatchWork int64 `json:"patchWork,omitempty"`
	// Parked are the records that could not be used.
	Parked []Parked `json:"parked,omitempty"`
}

// Parked is a record that could not be used, and why.
type Parked struct {
	Sequence uint64 `json:"sequence"`
	Type     string `json:"type"`
	Reason   string `json:"reason"`
}

// SessionStatus is the state of a session (see docs/reference/protocol.md#statuses). It stays active while
// a run waits for a person.
type SessionStatus string

// Session states.
const (
	SessionActive      SessionStatus = "active"
	SessionPaused      SessionStatus = "paused"
	SessionInterrupted SessionStatus = "interrupted"
	SessionCompleted   SessionStatus = "completed"
	SessionFailed      SessionStatus = "failed"
)

// Session is the state of one session of a tree.
type Session struct {
	SessionID    string                `json:"sessionId"`
	AgentType    string                `json:"agentType"`
	StreamID     string                `json:"streamId"`
	Status       SessionStatus         `json:"status"`
	StreamStatus eventlog.StreamStatus `json:"streamStatus"`
	UserID       string                `json:"userId,omitempty"`
	Tenant       string                `json:"tenant,omitempty"` // the root's
	Tags         []string              `json:"tags,omitempty"`
	Metadata     map[string]string     `json:"metadata,omitempty"`
	CreatedAt    int64                 `json:"createdAt"` // ms since the epoch
	UpdatedAt    int64                 `json:"updatedAt"` // ms since the epoch
	// ExpiresAt is when the session expires, so that a sweep ends it if it still waits,
	// in ms since the epoch; 0: never. Each request for a run may postpone it.
	ExpiresAt int64 `json:"expiresAt,omitempty"`

	Messages    []Message       `json:"messages"`
	CustomState jsondoc.Doc     `json:"customState"`
	Output      json.RawMessage `json:"output,omitempty"`
	Error       *Failure        `json:"error,omitempty"`

	Version     uint64       `json:"version"`     // commits so far
	CommittedAt uint64       `json:"committedAt"` // sequence of the last commit point
	StepCount   int          `json:"stepCount"`   // committed steps of the current or last turn
	TurnCount   int          `json:"turnCount"`
	ResumeCount int          `json:"resumeCount"`
	Runs        []Run        `json:"runs,omitempty"`
	Checkpoints []Checkpoint `json:"checkpoints,omitempty"`
	Usage       Usage        `json:"usage"`
	// Turn is the open turn: from the request of a run until it completes
	// or fails, across interruptions and crashes.
	Turn *Turn `json:"turn,omitempty"`
	// Stopped is where the session's stream stopped, nil while a turn continues.
	Stopped *Stopped `json:"stopped,omitempty"`
	// Asides are content of assistants' messages that is not of the answers. Saved folds
	// have the field's name.
	Asides []Annotation `json:"asides,omitempty"`
	// TruncatedCalls are the ids of tool calls that rollbacks have truncated. Saved folds have the
	// field's name, as that of [Run.Truncated].
	TruncatedCalls []string `json:"struckCalls,omitempty"`
	// Child is the session's relation to its parent, if it is a sub-agent's.
	Child *fact.SubSession `json:"child,omitempty"`
	// Delivered is the number of a persistent sub-agent's last turn of whose end its
	// parent was notified.
	Delivered int `json:"delivered,omitempty"`
	// Terminated: a persistent sub-agent was ended for good and accepts no message any
	// more.
	Terminated bool `json:"terminated,omitempty"`
	// SubAgentTurns are the turns of sub-agents that have begun and not ended, by the
	// sub-agent's session, from subagent_start and subagent_end.
	SubAgentTurns map[string]SubAgentTurn `json:"subAgentTurns,omitempty"`
	// RemoteSequence is the sequence up to which the stream of a remote sub-agent has
	// been copied.
	RemoteSequence uint64 `json:"remoteSequence,omitempty"`
	// Resync is the reason of the last stream_resync, empty if there was none.
	Resync eventlog.ResyncReason `json:"resync,omitempty"`
	// RemoteCalls are the tool calls of a remote sub-agent and its own
	// sub-agents, oldest first.
	RemoteCalls []fact.RemoteCall `json:"remoteCalls,omitempty"`
	// SystemPrompt replaces the agent's; nil: the session has none.
	SystemPrompt *string `json:"systemPrompt,omitempty"`
	// Workspace is the session's workspace, nil if it was never used.
	Workspace *Workspace `json:"workspace,omitempty"`
	// Ephemeral: the session is erased when its run has ended or waits.
	Ephemeral bool `json:"ephemeral,omitempty"`
	// ForkedFrom is where the session was forked from.
	ForkedFrom *Fork `json:"forkedFrom,omitempty"`
}

// SubAgentTurn says which call of its parent began a sub-agent's turn, in which step.
type SubAgentTurn struct {
	CallID string `json:"callId"`
	Step   int    `json:"step"`
}

// Failure is why a run failed.
type Failure struct {
	Message string `json:"message"`
	Code    string `json:"code,omitempty"`
	// Retryable: a retry may succeed.
	Retryable bool `json:"retryable,omitempty"`
}

// Message is one message of the conversation.
type Message struct {
	Role      Role   `json:"role"`
	Turn      int    `json:"turn"`
	Step      int    `json:"step,omitempty"`
	Timestamp int64  `json:"timestamp"`
	Sequence  uint64 `json:"sequence"` // of the record that it comes from

	// Content is the text of a user's or an assistant's message.
	Content string `json:"content,omitempty"`

	Files    []fact.MessageFile `json:"files,omitempty"`    // user
	Metadata json.RawMessage    `json:"metadata,omitempty"` // user
	// MessageID is the client's id of the message, if it has one (not of an assistant's answer).
	MessageID string `json:"messageId,omitempty"`

	Parts      []fact.TurnPart `json:"parts,omitempty"`      // assistant, in the model's order
	StopReason fact.StopReason `json:"stopReason,omitempty"` // assistant

	ToolCallID string          `json:"toolCallId,omitempty"` // tool
	ToolName   string          `json:"toolName,omitempty"`   // tool
	Result     json.RawMessage `json:"result,omitempty"`     // tool
	Error      string          `json:"error,omitempty"`      // tool
	ErrorCode  string          `json:"errorCode,omitempty"`  // tool
	// AnsweredAs is what the call waited for, empty if it did not (tool).
	AnsweredAs fact.PendingKind `json:"answeredAs,omitempty"`
	// Denial is a person's reason against the call (tool).
	Denial *Denial `json:"denial,omitempty"`
}

// Denial is why a call was not executed: a person did not approve it.
type Denial struct {
	ApprovalID string `json:"approvalId"`
	Reason     string `json:"reason,omitempty"`
}

// Stopped is where a stream stopped: it has ended, or waits to be resumed.
type Stopped struct {
	// Before is the head before the first record of the last assistant
	// message.
	Before uint64 `json:"before"`
	At     uint64 `json:"at"` // the record that stopped it; 0: not yet, but the turn is finished
}

// Role is the author of a message.
type Role string

// Roles.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
	RoleSystem    Role = "system" // added by a client; it follows the system prompt
)

// OwnMetadata is the member of a message's metadata that marks helixd's own messages;
// users' messages must not have it.
const OwnMetadata = "helix"

// ReminderMetadata is the metadata of the message with which helixd asks for structured
// output again.
const ReminderMetadata = `{"hidden":true,"helix":"reminder"}`

// Hidden reports whether the message is for the model only.
func (m Message) Hidden() bool {
	hidden, _ := m.marks()
	return hidden
}

func (m Message) marks() (hidden bool, helix string) {
	var meta struct {
		Hidden bool   `json:"hidden"`
		Helix  string `json:"helix"`
	}
	if m.Metadata == nil || json.Unmarshal(m.Metadata, &meta) != nil {
		return false, ""
	}
	return meta.Hidden, meta.Helix
}

// Run is one execution within a session.
type Run struct {
	RunID         string         `json:"runId"`
	Name          string         `json:"name,omitempty"` // the client's own, see fact.RunOptions
	Turn          int            `json:"turn"`
	Mode          fact.RunMode   `json:"mode"`
	Status        fact.RunStatus `json:"status"`
	StartSequence uint64         `json:"startSequence"` // head when it was requested
	StepCount     int            `json:"stepCount"`     // steps that it committed
	Claims        int            `json:"claims"`
	StartedAt     int64          `json:"startedAt"`
	CompletedAt   int64          `json:"completedAt,omitempty"`
	Truncated     bool           `json:"struck,omitempty"`      // a rollback has truncated it
	TraceParent   string         `json:"traceParent,omitempty"` // the caller's, as in RunRequested
	RequestID     string         `json:"requestId,omitempty"`   // of the HTTP request that asked for it
	Deleted       bool           `json:"deleted,omitempty"`     // hidden from clients that name it
}

// Checkpoint is a committed step, or what was durable when a run was interrupted. Its
// state is the fold up to StreamSequence.
type Checkpoint struct {
	ID             string        `json:"id"`
	RunID          string        `json:"runId"`
	StepCount      int           `json:"stepCount"`
	Status         SessionStatus `json:"status"`
	Timestamp      int64         `json:"timestamp"`
	MessageCount   int           `json:"messageCount"`
	StreamSequence uint64        `json:"streamSequence"`
}

// LatestCheckpoint returns the last checkpoint, or nil.
func (s *Session) LatestCheckpoint() *Checkpoint {
	if len(s.Checkpoints) == 0 {
		return nil
	}
	return &s.Checkpoints[len(s.Checkpoints)-1]
}

// CheckpointAt returns the last checkpoint at or before a sequence, or nil.
func (s *Session) CheckpointAt(seq uint64) *Checkpoint {
	for i := len(s.Checkpoints) - 1; i >= 0; i-- {
		if s.Checkpoints[i].StreamSequence <= seq {
			return &s.Checkpoints[i]
		}
	}
	return nil
}

// CurrentRun returns the last run that no rollback has truncated, or nil.
func (s *Session) CurrentRun() *Run {
	for i := len(s.Runs) - 1; i >= 0; i-- {
		if !s.Runs[i].Truncated {
			return &s.Runs[i]
		}
	}
	return nil
}

// RunNamed returns the run to which its client gave a name, or nil. Runs that a rollback has
// truncated do not count, and the name "" is none.
func (s *Session) RunNamed(name string) *Run {
	for i := len(s.Runs) - 1; i >= 0 && name != ""; i-- {
		if run := &s.Runs[i]; !run.Truncated && run.Name == name {
			return run
		}
	}
	return nil
}

// callIDs yields the ids of calls that are in use, or were before a rollback. It reports whether
// the caller wants more.
func (s *Session) callIDs(yield func(string) bool) bool {
	for _, id := range s.TruncatedCalls {
		if !yield(id) {
			return false
		}
	}
	for _, c := range s.RemoteCalls {
		if !yield(c.ID) {
			return false
		}
	}
	for _, m := range s.Messages {
		for _, p := range m.Parts {
			if p.ToolCall != nil && !yield(p.ToolCall.ID) {
				return false
			}
		}
	}
	return true
}

// Waits reports whether the session's stream has stopped and can continue: it was
// interrupted, or waits for a person.
func (s *Session) Waits() bool {
	return !s.StreamStatus.Terminal() &&
		(s.Status == SessionInterrupted || s.Status == SessionPaused || s.StreamStatus == eventlog.StreamWaiting)
}

// trackStop records where the stream stopped, which can be a few records after the end of
// the turn. The turn is the one that was open before the record.
func (s *Session) trackStop(turn *Turn, seq uint64) {
	stopped := s.StreamStatus.Terminal() || s.Waits()
	if !stopped && s.Turn != nil {
		s.Stopped = nil
		return
	}
	if s.Stopped == nil && (stopped || turn != nil) {
		s.Stopped = &Stopped{}
		if run := s.CurrentRun(); turn != nil && turn.Before != nil {
			s.Stopped.Before = *turn.Before
		} else if run != nil {
			s.Stopped.Before = run.StartSequence
		}
	}
	if stopped && s.Stopped.At == 0 {
		s.Stopped.At = seq
	}
}

// Over reports whether the session has had a turn and none is open.
func (s *Session) Over() bool { return s.Turn == nil && s.TurnCount > 0 }

// Suspended reports whether the session's last run waits to be resumed.
func (s *Session) Suspended() bool {
	run := s.CurrentRun()
	return s.Turn != nil && s.Status == SessionActive && run != nil && run.Suspended()
}

// Running reports whether the session's last run continues, as far as the log
// knows.
func (s *Session) Running() bool {
	run := s.CurrentRun()
	return s.Turn != nil && s.Status == SessionActive && run != nil && run.Status == fact.RunRunning
}

// Suspended reports whether the run ended to wait.
func (r *Run) Suspended() bool {
	return r.Status == fact.RunClientTool || r.Status == fact.RunChildren || r.Status == fact.RunStepPartial
}
