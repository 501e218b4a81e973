package cohort

import (
	"bytes"
	"slices"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/readmodel"
)

// Filter takes sessions; what is empty takes all.
type Filter struct {
	Agent  string                  `json:"agent,omitempty"`  // of the root
	Status projector.SessionStatus `json:"status,omitempty"` // of the root
	Tag    string                  `json:"tag,omitempty"`
	User   string                  `json:"user,omitempty"`
	Tool   string                  `json:"tool,omitempty"`  // that was called, by the root or a sub-agent
	Error  string                  `json:"error,omitempty"` // the code of a run or a call that failed
	Text   string                  `json:"text,omitempty"`  // that is in a record's payload, byte for byte
	// Since and Until bound when sessions were created: Since <= created < Until.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Tokens is how many tokens the session has used at least, with its sub-agents.
	Tokens int64 `json:"tokens,omitempty"`
	// Cost is what the session has cost at least, with its sub-agents, by the prices of models.
	Cost   float64                    `json:"cost,omitempty"`
	Prices map[string]readmodel.Price `json:"-"`
}

func (f Filter) takes(l *look) bool {
	created := time.UnixMilli(l.tree.CreatedAt)
	return (f.Agent == "" || l.tree.AgentType == f.Agent) &&
		(f.Status == "" || l.tree.Status == f.Status || f.Status == projector.SessionPaused && l.tree.Status == projector.SessionActive && l.tree.Waits()) &&
		(f.Tag == "" || slices.Contains(l.tree.Tags, f.Tag)) &&
		(f.User == "" || l.tree.UserID == f.User) &&
		(f.Tool == "" || l.tools[f.Tool]) &&
		(f.Error == "" || l.errors[f.Error]) &&
		(f.Since.IsZero() || !created.Before(f.Since)) &&
		(f.Until.IsZero() || created.Before(f.Until)) &&
		l.tokens >= f.Tokens && l.cost >= f.Cost &&
		(f.Text == "" || slices.ContainsFunc(l.payloads, func(p []byte) bool { return bytes.Contains(p, []byte(f.Text)) }))
}

// look is what a filter knows of a session.
type look struct {
	tree          projector.Tree
	tools, errors map[string]bool
	tokens        int64
	cost          float64
	prices        map[string]readmodel.Price
	payloads      [][]byte
}

func newLook(f Filter) *look {
	return &look{tools: map[string]bool{}, errors: map[string]bool{}, prices: f.Prices}
}

func (l *look) see(r eventlog.Record) {
	projector.Apply(&l.tree, r)
	l.payloads = append(l.payloads, r.Payload)
	if r.Kind != eventlog.KindFact {
		return
	}
	f, err := r.Fact()
	if err != nil {
		return
	}
	switch f := f.(type) {
	case *fact.ModelTurn:
		l.tokens += f.Usage.Total
		l.cost += l.prices[f.Model].Cost(f.Usage)
	case *fact.ToolResult:
		l.tools[f.ToolName] = true
		l.errors[f.ErrorCode] = true
	case *fact.CallSuspended:
		l.tools[f.ToolName] = true
	case *fact.RunEnded:
		l.errors[f.ErrorCode] = true
	}
}
