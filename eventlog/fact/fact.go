package fact

import "encoding/json"

// Fact is a record that is not a chunk: what helixd must remember in addition to the
// public stream. Facts share the session's subject, sequence and order with
// the chunks and are never shown to chunk readers.
type Fact interface {
	// Type is the value of the JSON's "type" field.
	Type() string
	// At is the time of writing in milliseconds since the epoch. Folds know
	// no other clock.
	At() int64
	fact()
}

// Base carries the fields of every fact but [StreamEnd].
type Base struct {
	SessionID string `json:"sessionId"` // the session within the tree that the fact is about
	Timestamp int64  `json:"timestamp"` // milliseconds since the epoch
	// By is the caller whose request the fact records; nil: helixd itself, or the
	// caller is not known.
	By *Actor `json:"by,omitempty"`
}

func (b *Base) base() *Base { return b }

// At returns the time of writing.
func (b *Base) At() int64 { return b.Timestamp }

// ClaimSettling is how a claim was settled.
type ClaimSettling string

// How claims are settled.
const (
	ClaimReleased ClaimSettling = "released"
	ClaimSurvived ClaimSettling = "survived"
)

func (*Base) fact() {}

// Facts of a session and its runs.
type (
	// SessionCreated is the first record of every session. Child is set if it
	// is a sub-agent's; the record is then in the log of its root session.
	SessionCreated struct {
		AgentType string            `json:"agentType,omitempty" helix:"id"` // empty: the first run names it
		State     json.RawMessage   `json:"state,omitempty" helix:"object"` // initial custom state, an object
		UserID    string            `json:"userId,omitempty"`
		Tenant    string            `json:"tenant,omitempty" helix:"id"` // the team or customer that the session belongs to
		Tags      []string          `json:"tags,omitempty"`
		Metadata  map[string]string `json:"metadata,omitempty"`
		Child     *SubSession       `json:"child,omitempty"`
		Base
	}

	// SessionImported says that so many records before it were imported from another
	// log, or restored from a backup, and by whom. It changes nothing of the session.
	SessionImported struct {
		Records int `json:"records" helix:"count"`
		// Backup is when the backup that they were restored from began, in milliseconds
		// since the epoch; 0: they were imported.
		Backup int64 `json:"backup,omitempty" helix:"count"`
		Base
	}

	// UserMessage is a message to the agent. A message whose metadata holds
	// "hidden": true is for the model only.
	UserMessage struct {
		Content  string          `json:"content"`
		Files    []MessageFile   `json:"files,omitempty"`
		Metadata json.RawMessage `json:"metadata,omitempty" helix:"object"` // an object
		// MessageID is the id that the client gave it, if any. A message with the same id
		// is the same message, sent again.
		MessageID string `json:"messageId,omitempty" helix:"id"`
		Base
	}

	// RunRequested asks for a run; it re-activates an ended stream.
	RunRequested struct {
		RunID string  `json:"runId" helix:"id"`
		Mode  RunMode `json:"mode"`
		// ExpiresAt is when a sweep may end the session if it still waits, in
		// milliseconds since the epoch; 0: never, or as before.
		ExpiresAt int64 `json:"expiresAt,omitempty" helix:"count"`
		// TraceParent is the caller's span, in the form of the header traceparent (W3C
		// Trace Context), if the request had one.
		TraceParent string `json:"traceParent,omitempty"`
		// AgentType is the agent of a session that has none yet; empty: the session has one.
		AgentType string `json:"agentType,omitempty" helix:"id"`
		RunOptions
		Base
	}

	// RunClaimed makes its writer the only one of the tree.
	RunClaimed struct {
		RunID   string `json:"runId" helix:"id"`
		Node    string `json:"node"`
		Attempt int    `json:"attempt"` // claims of this run so far, from 1
		Base
	}

	// ClaimSettled says that the session tree did not end the process which claimed it:
	// the process released the tree, or has driven it for a while and is still alive. A
	// process that a tree ends writes none.
	ClaimSettled struct {
		RunID string        `json:"runId" helix:"id"`
		Node  string        `json:"node"`
		How   ClaimSettling `json:"how"`
		Base
	}

	// ModelTurn is a model's complete answer, a commit point: it is never
	// asked for again.
	ModelTurn struct {
		RunID      string     `json:"runId"`
		StepID     string     `json:"stepId" helix:"id"`
		Step       int        `json:"step"`
		Model      string     `json:"model,omitempty"`
		Parts      []TurnPart `json:"parts"`
		StopReason StopReason `json:"stopReason"`
		Usage      TokenUsage `json:"usage"`
		Base
	}

	// ModelFailed is a model call that gave no answer.
	ModelFailed struct {
		RunID     string `json:"runId"`
		StepID    string `json:"stepId"`
		Step      int    `json:"step"`
		Attempt   int    `json:"attempt"` // failed calls of this step so far, from 1
		Error     string `json:"error"`
		Code      string `json:"code"`
		Retryable bool   `json:"retryable"`
		Base
	}

	// ToolResult is the outcome of a call, a commit point: the call is never
	// executed again. Error is set if it failed.
	ToolResult struct {
		RunID      string          `json:"runId"`
		StepID     string          `json:"stepId"`
		ToolCallID string          `json:"toolCallId" helix:"id"`
		ToolName   string          `json:"toolName"`
		Result     json.RawMessage `json:"result"`
		Error      string          `json:"error,omitempty"`
		ErrorCode  string          `json:"errorCode,omitempty"`
		// Cause is what the server has done that the call needed: its host, status or network
		// error, and the setting to look at. It is for operators. The model does not see it.
		Cause string `json:"cause,omitempty"`
		Base
	}

	// RunEnded closes a run.
	RunEnded struct {
		RunID     string          `json:"runId" helix:"id"`
		Status    RunStatus       `json:"status"`
		Output    json.RawMessage `json:"output,omitempty"`
		Error     string          `json:"error,omitempty"`
		ErrorCode string          `json:"errorCode,omitempty"`
		Base
	}
)

// Facts of the stream.
type (
	// StreamPaused says that the stream waits.
	StreamPaused struct {
		Reason string `json:"reason,omitempty"`
		Base
	}

	// StreamResumed ends a pause.
	StreamResumed struct {
		Base
	}

	// StreamEnd says that the stream is complete until a new turn re-activates it.
	StreamEnd struct {
		StreamID    string          `json:"streamId" helix:"id"`
		Timestamp   int64           `json:"timestamp"`
		FinalOutput json.RawMessage `json:"finalOutput,omitempty"`
	}

	// StreamFailed ends the stream with an error.
	StreamFailed struct {
		Error string `json:"error"`
		Base
	}
)

// MessageFile is an attachment of a user message; Data is a data URL.
type MessageFile struct {
	Data      string `json:"data"`
	MediaType string `json:"mediaType"`
	Filename  string `json:"filename,omitempty"`
}

// TurnPart is one part of a model's answer, in the model's order. Exactly one
// of the first five fields is set, or none beside ProviderData.
type TurnPart struct {
	Reasoning string       `json:"reasoning,omitempty"`
	Text      string       `json:"text,omitempty"`
	ToolCall  *ToolCall    `json:"toolCall,omitempty"`
	Source    *Source      `json:"source,omitempty"`
	File      *MessageFile `json:"file,omitempty"` // generated by the model; Data may be a hosted URL
	// ProviderData is an object that the model's provider wants back with the part:
	// a signature, encrypted reasoning. Only the adapter that wrote it reads it; it
	// names the provider.
	ProviderData json.RawMessage `json:"providerData,omitempty" helix:"object"`
}

// Source is what a model cites: a web page if it has a URL, else a document.
type Source struct {
	ID        string `json:"sourceId" helix:"id"` // unique in the turn
	URL       string `json:"url,omitempty"`
	MediaType string `json:"mediaType,omitempty"` // of a document
	Title     string `json:"title,omitempty"`
	Filename  string `json:"filename,omitempty"` // of a document
}

// ToolCall is a model's request to call a tool. Its id is unique in the tree.
type ToolCall struct {
	ID   string `json:"toolCallId" helix:"id"`
	Name string `json:"toolName"`
	// Arguments is the model's text if that is JSON, else a JSON string
	// with the text.
	Arguments json.RawMessage `json:"arguments"`
}

// TokenUsage counts tokens: Prompt includes cached and cache-written ones,
// Completion includes reasoning.
type TokenUsage struct {
	Prompt     int64 `json:"prompt"`
	Completion int64 `json:"completion"`
	Reasoning  int64 `json:"reasoning,omitempty"`
	Cached     int64 `json:"cached,omitempty"`
	CacheWrite int64 `json:"cacheWrite,omitempty"`
	Total      int64 `json:"total"`
}

// Plus returns the sum of both.
func (u TokenUsage) Plus(v TokenUsage) TokenUsage {
	return TokenUsage{
		Prompt: u.Prompt + v.Prompt, Completion: u.Completion + v.Completion, Reasoning: u.Reasoning + v.Reasoning,
		Cached: u.Cached + v.Cached, CacheWrite: u.CacheWrite + v.CacheWrite, Total: u.Total + v.Total,
	}
}

// Minus returns what u has more than v.
func (u TokenUsage) Minus(v TokenUsage) TokenUsage {
	return TokenUsage{
		Prompt: u.Prompt - v.Prompt, Completion: u.Completion - v.Completion, Reasoning: u.Reasoning - v.Reasoning,
		Cached: u.Cached - v.Cached, CacheWrite: u.CacheWrite - v.CacheWrite, Total: u.Total - v.Total,
	}
}

// RunMode says how a run begins.
type RunMode string

// Run modes. All but the first resume a session.
const (
	ModeStart            RunMode = "start"             // a first run, or a new turn
	ModeContinue         RunMode = "continue"          // continue where the last run stopped
	ModeWithMessage      RunMode = "with_message"      // continue with a further user message
	ModeWithConfirmation RunMode = "with_confirmation" // continue with all open approvals decided
	ModeFromCheckpoint   RunMode = "from_checkpoint"   // go back to a checkpoint, then on
	ModeRetry            RunMode = "retry"             // go back to a turn's beginning, then on
)

// RunStatus is the state of a run.
type RunStatus string

// Run states.
const (
	RunRunning     RunStatus = "running"
	RunCompleted   RunStatus = "completed"
	RunFailed      RunStatus = "failed"
	RunStopped     RunStatus = "interrupted"
	RunClientTool  RunStatus = "suspended_client_tool"
	RunChildren    RunStatus = "suspended_awaiting_children"
	RunStepPartial RunStatus = "suspended_step_partial"
)

// StopReason says why a model stopped, in helixd's own terms.
type StopReason string

// Stop reasons.
const (
	StopEndTurn       StopReason = "end_turn"
	StopToolUse       StopReason = "tool_use"
	StopMaxTokens     StopReason = "max_tokens"
	StopSequence      StopReason = "stop_sequence"
	StopContentFilter StopReason = "content_filter"
	StopError         StopReason = "error"
	StopUnknown       StopReason = "unknown"
)

// Unknown is a fact of a kind that this version does not know. It keeps
// the original bytes and encodes to them.
type Unknown struct {
	Kind string
	Raw  json.RawMessage
	Base
}

// At returns the time of writing.
func (e *StreamEnd) At() int64 { return e.Timestamp }
func (*StreamEnd) fact()       {}

func (*SessionCreated) Type() string  { return "session_created" }
func (*UserMessage) Type() string     { return "user_message" }
func (*RunRequested) Type() string    { return "run_requested" }
func (*RunClaimed) Type() string      { return "run_claimed" }
func (*ClaimSettled) Type() string    { return "claim_settled" }
func (*ModelTurn) Type() string       { return "model_turn" }
func (*ModelFailed) Type() string     { return "model_failed" }
func (*ToolResult) Type() string      { return "tool_result" }
func (*RunEnded) Type() string        { return "run_ended" }
func (*StreamPaused) Type() string    { return "stream_paused" }
func (*StreamResumed) Type() string   { return "stream_resumed" }
func (*StreamEnd) Type() string       { return "stream_end" }
func (*StreamFailed) Type() string    { return "stream_failed" }
func (*SessionImported) Type() string { return "session_imported" }

// Type returns the kind that the writer gave.
func (u *Unknown) Type() string { return u.Kind }
