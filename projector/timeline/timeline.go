package timeline

import (
	"cmp"
	"slices"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// View is a timeline, or what is new of it.
type View struct {
	SessionID string `json:"sessionId"`
	// Head is the sequence of the last record in the timeline.
	Head         uint64                  `json:"head"`
	Status       projector.SessionStatus `json:"status"`
	StreamStatus eventlog.StreamStatus   `json:"streamStatus"`
	StartedAt    int64                   `json:"startedAt"` // ms since the epoch
	UpdatedAt    int64                   `json:"updatedAt"` // ms since the epoch
	// Floor is set if retention has removed the records up to it: the
	// timeline begins there.
	Floor uint64 `json:"floor,omitempty"`
	// Lanes are those of all sessions of the tree in order of appearance,
	// sub-agents' beneath the one that called them.
	Lanes []Lane `json:"lanes"`
	Spans []Span `json:"spans"` // by the sequence that they begin with
	Marks []Mark `json:"marks"` // by sequence
}

// Lane is a session of the tree.
type Lane struct {
	SessionID        string `json:"sessionId"`
	AgentType        string `json:"agentType"`
	ParentSessionID  string `json:"parentSessionId"`  // empty: it is the root
	ParentToolCallID string `json:"parentToolCallId"` // the call that made it
	Depth            int    `json:"depth"`            // how many ancestors it has
}

// Span is something that lasted, or a single message.
type Span struct {
	ID   string `json:"id"` // never changes
	Lane string `json:"lane"`
	Kind Kind   `json:"kind"`
	// From and To are its first and its last record so far.
	From      uint64 `json:"from"`
	To        uint64 `json:"to"`
	Open      bool   `json:"open"`
	StartedAt int64  `json:"startedAt"` // ms since the epoch
	EndedAt   int64  `json:"endedAt"`   // ms since the epoch; of an open one: of its last record
	Label     string `json:"label"`
	Status    Status `json:"status"`
	RunID     string `json:"runId,omitempty"`
	Turn      int    `json:"turn,omitempty"`
	Step      int    `json:"step,omitempty"`
	CallID    string `json:"callId,omitempty"`
	// Records counts its records; those of a run are what it wrote, those of a
	// step all of its lane meanwhile.
	Records int `json:"records"`
	// Chars counts the characters that were streamed in it.
	Chars int    `json:"chars,omitempty"`
	Node  string `json:"node,omitempty"` // that executed it last
	Error string `json:"error,omitempty"`
	// Cause is what the server did that a call needed (fact.ToolResult), cut to MaxError.
	Cause string `json:"cause,omitempty"`
	// Truncated says that the span is truncated, TruncatedBy is its marker's sequence. Their
	// names in JSON are older than the term; clients know them.
	Truncated   bool   `json:"struck,omitempty"`
	TruncatedBy uint64 `json:"struckBy,omitempty"`
	// Updated is the record that it changed with last.
	Updated uint64 `json:"updated"`
}

// Mark is a moment.
type Mark struct {
	Sequence    uint64   `json:"sequence"` // with its kind it names the mark
	Kind        MarkKind `json:"kind"`
	Lane        string   `json:"lane"`
	At          int64    `json:"at"` // ms since the epoch
	Label       string   `json:"label"`
	ID          string   `json:"id,omitempty"` // of a checkpoint
	Truncated   bool     `json:"struck,omitempty"`
	TruncatedBy uint64   `json:"struckBy,omitempty"`
	Updated     uint64   `json:"updated"`
}

// Kind is the kind of a [Span].
type Kind string

// Kinds of spans; see the package's documentation.
const (
	KindRun        Kind = "run"
	KindStep       Kind = "step"
	KindUser       Kind = "user"
	KindReasoning  Kind = "reasoning"
	KindText       Kind = "text"
	KindTool       Kind = "tool"
	KindApproval   Kind = "approval"
	KindClientTool Kind = "client_tool"
	KindChild      Kind = "child"
	KindSuspended  Kind = "suspended"
	KindCustom     Kind = "custom"
	KindOutside    Kind = "outside"
)

// Status is how a [Span] goes, or went.
type Status string

// Statuses of spans.
const (
	StatusOpen        Status = "open"
	StatusDone        Status = "done"
	StatusFailed      Status = "failed"
	StatusWaiting     Status = "waiting" // for a person or a sub-agent
	StatusInterrupted Status = "interrupted"
	StatusDenied      Status = "denied"
)

// MarkKind is the kind of a [Mark].
type MarkKind string

// Kinds of marks.
const (
	MarkCheckpoint MarkKind = "checkpoint"
	MarkDiscarded  MarkKind = "discarded" // a step ends without a step_end
	MarkTruncated  MarkKind = "truncated"
	MarkRollback   MarkKind = "rollback"
	MarkClaimed    MarkKind = "claimed"
	MarkTakeover   MarkKind = "takeover" // a claim of what another has not ended, or has handed over
	MarkInterrupt  MarkKind = "interrupt"
	MarkAbort      MarkKind = "abort"
	MarkPaused     MarkKind = "paused"
	MarkResumed    MarkKind = "resumed"
	MarkForked     MarkKind = "forked"
	MarkRecalled   MarkKind = "recalled" // the agent was reminded of memories, or could not be
	MarkError      MarkKind = "error"
	MarkParked     MarkKind = "parked" // a record that the fold of the state could not use
	MarkEnded      MarkKind = "ended"
)

// Limits of what a timeline quotes, in characters.
const (
	MaxLabel = 80
	MaxError = 400
)

// Timeline is the fold. The zero value is not ready; see [New].
type Timeline struct {
	state *projector.Tree
	floor uint64
	lanes []*lane // in order of appearance
	byID  map[string]*lane
	spans []*Span // in the order in which they appeared
	marks []*Mark
	weigh int

	now int64 // of the last record with a time
	// claimed says that the last claim's run has not ended.
	claimed bool
}

// New returns the timeline before the first record.
func New() *Timeline {
	return &Timeline{state: new(projector.Tree), byID: map[string]*lane{}}
}

// From returns the timeline of a session whose records up to a state's are
// gone. It keeps the state and changes it.
func From(state *projector.Tree) *Timeline {
	t := New()
	t.state, t.floor = state, state.Head
	if state.Head > 0 {
		t.now = state.UpdatedAt
		t.takeOver(state.Head)
	}
	return t
}

// Head returns the sequence of the last record in the timeline.
func (t *Timeline) Head() uint64 { return t.state.Head }

// State returns the state at the timeline's head, which nothing changes.
func (t *Timeline) State() *projector.Tree { return t.state.Clone() }

// Size returns about how many bytes the timeline holds.
func (t *Timeline) Size() int {
	const span, point = 400, 24
	size := t.weigh + span*len(t.spans) + span*len(t.marks)
	for _, l := range t.lanes {
		size += point * cap(l.points)
	}
	return size
}

// CountSince returns how many spans, marks and lanes Since returns.
func (t *Timeline) CountSince(n uint64) int {
	count := len(t.lanes)
	for _, s := range t.spans {
		if s.Updated > n {
			count++
		}
	}
	for _, m := range t.marks {
		if m.Updated > n {
			count++
		}
	}
	return count
}

// Since returns the spans and marks that are new or have changed with records
// after n; with 0 all.
func (t *Timeline) Since(n uint64) View {
	v := View{
		SessionID: t.state.SessionID, Head: t.state.Head, Status: t.state.Status, StreamStatus: t.state.StreamStatus,
		StartedAt: t.state.CreatedAt, UpdatedAt: t.state.UpdatedAt, Floor: t.floor,
		Lanes: t.view(), Spans: []Span{}, Marks: []Mark{},
	}
	for _, s := range t.spans {
		if s.Updated > n {
			v.Spans = append(v.Spans, *s)
		}
	}
	for _, m := range t.marks {
		if m.Updated > n {
			v.Marks = append(v.Marks, *m)
		}
	}
	slices.SortStableFunc(v.Spans, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	return v
}
