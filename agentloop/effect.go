package agentloop

import (
	"encoding/json"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// Effect is something to be done: one of the types below. Session is the
// session of the tree that it is about.
//
// An effect with a key takes its time. It is performed beside others, once at a
// time, for as long as decide goes on wanting it. The others are appends.
type Effect interface {
	key() string
	about() string
}

// Effects that take their time.
type (
	// CallModel asks the model for the next answer, after a pause.
	CallModel struct {
		Session string
		RunID   string
		StepID  string
		Step    int
		After   time.Duration
	}
	// Recall asks what the agent remembers that may matter in its turn.
	Recall struct {
		Session string
		RunID   string
	}
	// RunCall executes a tool call, or has it wait.
	RunCall struct {
		Session string
		StepID  string
		Call    projector.Call
	}
	// AwaitDeadline ends a call that waits for a sub-agent when it has waited
	// for too long.
	AwaitDeadline struct {
		Session string
		StepID  string
		Call    projector.Call
		At      int64 // ms since the epoch
	}
	// SaveWorkspace keeps the files of the session's workspace.
	SaveWorkspace struct{ Session string }
	// CallHooks calls the hooks that are due. Not decide but the driver wants it.
	CallHooks struct{ Session string }
	// StopRemote aborts what a remote agent does for a call that nobody here
	// works on any more, once and as far as it can be reached.
	StopRemote struct {
		Session string
		Call    projector.Call
	}
)

// Effects that are appends.
type (
	// Truncate strikes orphans and tells clients to reload.
	Truncate struct {
		Session string
		Ranges  []eventlog.Range
		Reason  eventlog.ResyncReason
	}
	// CloseCall records the outcome of a call that has waited: what was
	// submitted, or what the sub-agent has said.
	CloseCall struct {
		Session string
		StepID  string
		Call    projector.Call
	}
	// RunCompanion executes a companion tool, which looks at other sessions
	// of the tree.
	RunCompanion struct {
		Session string
		StepID  string
		Call    projector.Call
	}
	// CommitStep makes a step final and marks a checkpoint.
	CommitStep struct {
		Session string
		Step    projector.Step
	}
	// Tell adds a hidden message to the conversation.
	Tell struct {
		Session  string
		Text     string
		Metadata json.RawMessage
	}
	// ResumeChild begins a further run of a sub-agent that has waited.
	ResumeChild struct{ Session string }
	// StopChild hands a stop on to a sub-agent, or says that the session has
	// heard of its own.
	StopChild struct {
		Session string
		Stop    projector.Stop
	}
	// Suspend ends the run until somebody resumes it.
	Suspend struct {
		Session string
		Status  eventlog.RunStatus
		Calls   []projector.Call
	}
	// Interrupt ends the run because somebody wants it to stop for now.
	Interrupt struct {
		Session string
		Reason  string
	}
	// Finish completes the run.
	Finish struct {
		Session    string
		Output     json.RawMessage
		Structured bool // there is an output chunk
	}
	// Fail ends the run with an error.
	Fail struct {
		Session   string
		Code      string
		Message   string
		Retryable bool
	}
)

func (e CallModel) key() string     { return "model " + e.Session }
func (e Recall) key() string        { return "recall " + e.Session }
func (e RunCall) key() string       { return callKey(e.Session, e.Call.ID) }
func (e AwaitDeadline) key() string { return "deadline " + e.Session + " " + e.Call.ID }
func (e SaveWorkspace) key() string { return "save " + e.Session }
func (e StopRemote) key() string    { return stopKey(e.Session, e.Call.ID) }
func (e CallHooks) key() string     { return "hooks " + e.Session }
func (Truncate) key() string        { return "" }
func (CloseCall) key() string       { return "" }
func (RunCompanion) key() string    { return "" }
func (CommitStep) key() string      { return "" }
func (Tell) key() string            { return "" }
func (ResumeChild) key() string     { return "" }
func (StopChild) key() string       { return "" }
func (Suspend) key() string         { return "" }
func (Interrupt) key() string       { return "" }
func (Finish) key() string          { return "" }
func (Fail) key() string            { return "" }

func callKey(session, call string) string { return "call " + session + " " + call }
func stopKey(session, call string) string { return "stop " + session + " " + call }

func (e CallModel) about() string     { return e.Session }
func (e Recall) about() string        { return e.Session }
func (e RunCall) about() string       { return e.Session }
func (e AwaitDeadline) about() string { return e.Session }
func (e SaveWorkspace) about() string { return e.Session }
func (e StopRemote) about() string    { return e.Session }
func (e CallHooks) about() string     { return e.Session }
func (e Truncate) about() string      { return e.Session }
func (e CloseCall) about() string     { return e.Session }
func (e RunCompanion) about() string  { return e.Session }
func (e CommitStep) about() string    { return e.Session }
func (e Tell) about() string          { return e.Session }
func (e ResumeChild) about() string   { return e.Session }
func (e StopChild) about() string     { return e.Session }
func (e Suspend) about() string       { return e.Session }
func (e Interrupt) about() string     { return e.Session }
func (e Finish) about() string        { return e.Session }
func (e Fail) about() string          { return e.Session }
