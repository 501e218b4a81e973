package lane

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/lab/result"
	"github.com/helixd/helixd/projector"
)

// finish puts the decisions in one order: those of a sub-agent are at its call. Sub-agents that
// stay come last, by their ids.
func (r *reader) finish() {
	l := &r.rec.Lane
	r.flatten(r.agent(r.rec.ID))
	for _, id := range slices.Sorted(maps.Keys(r.agents)) {
		if a := r.agents[id]; !a.child && id != r.rec.ID {
			r.flatten(a)
		}
	}
	if len(r.refused) > 0 {
		l.Unjudged = slices.Min(r.refused)
	}
	if len(r.rec.Inputs) == 0 {
		r.unfit("the session has no message of a user")
	}
	root := &r.tree.Session
	if run := root.CurrentRun(); run == nil || root.Running() {
		r.unfit("the session is still running")
	}
	switch {
	case l.Unjudged != "":
	case root.Suspended():
		l.Outcome = string(projector.SessionPaused)
	default:
		l.Outcome = string(root.Status)
	}
	if root.Error != nil && l.Outcome == string(projector.SessionFailed) {
		l.Error = root.Error.Code
	}
	if l.Outcome == string(projector.SessionCompleted) {
		l.Output = string(root.Output)
		var text string
		if json.Unmarshal(root.Output, &text) == nil {
			l.Output = text
		}
	}
}

func (r *reader) flatten(a *agent) {
	l := &r.rec.Lane
	for _, it := range a.items {
		c := it.call
		if c == nil {
			l.Decisions = append(l.Decisions, it.decision)
			continue
		}
		kind := result.ToolCall
		if strings.HasPrefix(c.Name, agentloop.SubAgentPrefix) {
			kind = result.SubAgent
		}
		d := result.NewDecision(kind, r.path(a.id), nameOf(c.Name), Arguments(c.Arguments))
		d.Sequence = c.sequence
		l.Decisions = append(l.Decisions, d)
		if c.approval != nil {
			asked := r.decision(result.Approval, a, nameOf(c.Name), struct {
				Arguments json.RawMessage `json:"arguments"`
				Approved  *bool           `json:"approved"`
			}{Arguments(c.Arguments), c.allowed}, c.approval.Sequence)
			l.Decisions = append(l.Decisions, asked)
		}
		if c.child != "" {
			r.flatten(r.agents[c.child])
		}
		if c.result != nil {
			l.Decisions = append(l.Decisions, *c.result)
		}
	}
}
