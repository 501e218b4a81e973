package decide

import (
	"encoding/json"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// Effect is something to be done: one of the types below.
type Effect interface {
	// Key distinguishes effects that take time: they are performed beside
	// others, each once at a time, for as long as Decide wants them. The other
	// effects are appends and have none.
	Key() string
	// About is the session of the tree that the effect is about.
	About() string
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
	// CallHooks calls the hooks that are due. Decide does not return it: the driver adds
	// it.
	CallHooks struct{ Session string }
	// StopRemote aborts what a remote agent does for a call that this node
	// does not work on any more, once and if it can be reached.
	StopRemote struct {
		Session string
		Call    projector.Call
	}
)

// Effects that are appends.
type (
	// Truncate truncates orphans and notifies clients, which then reload.
	Truncate struct {
		Session string
		Ranges  []eventlog.Range
		Reason  eventlog.ResyncReason
	}
	// CloseCall records the outcome of a call that has waited: what was
	// submitted, or the sub-agent's output.
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
	// StopChild passes a stop on to a sub-agent, or acknowledges the session's
	// own.
	StopChild struct {
		Session string
		Stop    projector.Stop
	}
	// Suspend ends the run until it is resumed.
	Suspend struct {
		Session string
		Status  fact.RunStatus
		Calls   []projector.Call
	}
	// Interrupt ends the run because of a request to stop it for now.
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

func (e CallModel) Key() string     { return "model " + e.Session }
func (e Recall) Key() string        { return "recall " + e.Session }
func (e RunCall) Key() string       { return CallKey(e.Session, e.Call.ID) }
func (e AwaitDeadline) Key() string { return "deadline " + e.Session + " " + e.Call.ID }
func (e SaveWorkspace) Key() string { return "save " + e.Session }
func (e StopRemote) Key() string    { return StopKey(e.Session, e.Call.ID) }
func (e CallHooks) Key() string     { return "hooks " + e.Session }
func (Truncate) Key() string        { return "" }
func (CloseCall) Key() string       { return "" }
func (RunCompanion) Key() string    { return "" }
func (CommitStep) Key() string      { return "" }
func (Tell) Key() string            { return "" }
func (ResumeChild) Key() string     { return "" }
func (StopChild) Key() string       { return "" }
func (Suspend) Key() string         { return "" }
func (Interrupt) Key() string       { return "" }
func (Finish) Key() string          { return "" }
func (Fail) Key() string            { return "" }

// CallKey is the key of a call's execution.
func CallKey(session, call string) string { return "call " + session + " " + call }

// StopKey is the key of a StopRemote for a call.
func StopKey(session, call string) string { return "stop " + session + " " + call }

func (e CallModel) About() string     { return e.Session }
func (e Recall) About() string        { return e.Session }
func (e RunCall) About() string       { return e.Session }
func (e AwaitDeadline) About() string { return e.Session }
func (e SaveWorkspace) About() string { return e.Session }
func (e StopRemote) About() string    { return e.Session }
func (e CallHooks) About() string     { return e.Session }
func (e Truncate) About() string      { return e.Session }
func (e CloseCall) About() string     { return e.Session }
func (e RunCompanion) About() string  { return e.Session }
func (e CommitStep) About() string    { return e.Session }
func (e Tell) About() string          { return e.Session }
func (e ResumeChild) About() string   { return e.Session }
func (e StopChild) About() string     { return e.Session }
func (e Suspend) About() string       { return e.Session }
func (e Interrupt) About() string     { return e.Session }
func (e Finish) About() string        { return e.Session }
func (e Fail) About() string          { return e.Session }
