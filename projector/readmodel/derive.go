package readmodel

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/helixd/helixd/projector"
)

// Rows are a tree's rows in the read models, without its texts.
type Rows struct {
	Sessions []Session // sorted by id, each once
	Runs     []Run     // by session, in the order in which they were requested
	Usage    []UsageCell
	Parked   []Parked
}

// UsageCell is what one run has used of one model, or of tools.
type UsageCell struct {
	SessionID string
	AgentType string
	UserID    string
	RunID     string // empty: usage that belongs to no run
	At        int64  // when the run began, in ms since the epoch
	Model     string // empty: tool calls
	Used
}

// Day is the day that a cell counts for, in UTC.
func (c UsageCell) Day() string { return time.UnixMilli(c.At).UTC().Format(time.DateOnly) }

// Derive returns the rows of the tree that the log has under root. The result shares
// nothing that later records change.
func Derive(root string, t *projector.Tree) Rows {
	var rows Rows
	for _, s := range sorted(t) {
		row := SessionRow(root, t, s)
		rows.Sessions = append(rows.Sessions, row)
		for _, run := range s.Runs {
			rows.Runs = append(rows.Runs, Run{
				SessionID: s.SessionID, RootSessionID: root, AgentType: s.AgentType, UserID: row.UserID,
				Run: run, Used: usedOf(s.Usage.Runs[run.RunID]),
			})
		}
		rows.Usage = append(rows.Usage, usageCells(row.UserID, s)...)
	}
	for _, p := range t.Parked {
		rows.Parked = append(rows.Parked, Parked{SessionID: root, Sequence: p.Sequence, Type: p.Type, Reason: p.Reason})
	}
	return rows
}

// sorted returns the sessions of a tree by id. A damaged tree may have a sub-agent with
// the root's id: then it returns the root.
func sorted(t *projector.Tree) []*projector.Session {
	byID := make(map[string]*projector.Session, 1+len(t.Children))
	for _, s := range slices.Backward(t.Sessions()) { // the root is first there
		byID[s.SessionID] = s
	}
	all := make([]*projector.Session, 0, len(byID))
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		all = append(all, byID[id])
	}
	return all
}

// SessionRow returns the row of a session of the tree that the log has under root.
func SessionRow(root string, t *projector.Tree, s *projector.Session) Session {
	row := Session{
		SessionID: s.SessionID, RootSessionID: root, StreamID: s.StreamID, AgentType: s.AgentType,
		Status: s.Status, StreamStatus: s.StreamStatus, Running: s.Running(),
		UserID: cmp.Or(s.UserID, t.UserID), Tags: slices.Clone(s.Tags), Metadata: maps.Clone(s.Metadata),
		CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt, ExpiresAt: s.ExpiresAt, HeadSequence: t.Head,
		Counts: Counts{Messages: len(s.Messages), Runs: len(s.Runs), Checkpoints: len(s.Checkpoints)},
	}
	for _, run := range s.Runs {
		row.Counts.Steps += run.StepCount
	}
	if run := s.CurrentRun(); run != nil {
		current := *run
		row.CurrentRun = &current
	}
	if t.Claim != nil {
		claim := *t.Claim
		row.Claim = &claim
	}
	switch {
	case s == &t.Session:
		row.Counts.Parked = len(t.Parked)
		if t.ForkedFrom != nil {
			row.ForkedFrom = t.ForkedFrom.SessionID
		}
	case s.Child != nil && s.Child.ParentSessionID != "":
		row.ParentSessionID = s.Child.ParentSessionID
	default: // a producer's chunks under their own name
		row.ParentSessionID = root
	}
	return row
}

func usedOf(t projector.Totals) Used {
	return Used{
		ModelCalls: t.ModelCalls, Tokens: t.Tokens,
		ToolCalls: t.ToolStats.TotalCalls, FailedToolCalls: t.ToolStats.FailedCalls,
	}
}

// usageCells divides a session's usage among its runs and models. Usage that no run
// accounts for has no run.
func usageCells(user string, s *projector.Session) []UsageCell {
	began := make(map[string]int64, len(s.Runs))
	for _, run := range s.Runs {
		began[run.RunID] = run.StartedAt
	}
	var cells []UsageCell
	add := func(run, model string, used Used) {
		if used == (Used{}) {
			return
		}
		at, ok := began[run]
		if !ok {
			at = s.CreatedAt
		}
		cells = append(cells, UsageCell{
			SessionID: s.SessionID, AgentType: s.AgentType, UserID: user, RunID: run, At: at, Model: model, Used: used,
		})
	}
	rest, tools := map[string]projector.ModelUsage{}, s.Usage.ToolStats
	maps.Copy(rest, s.Usage.Models)
	for _, run := range slices.Sorted(maps.Keys(s.Usage.Runs)) {
		used := s.Usage.Runs[run]
		for _, model := range slices.Sorted(maps.Keys(used.Models)) {
			m := used.Models[model]
			add(run, model, Used{ModelCalls: m.Calls, Tokens: m.Tokens})
			rest[model] = projector.ModelUsage{Calls: rest[model].Calls - m.Calls, Tokens: rest[model].Tokens.Minus(m.Tokens)}
		}
		add(run, "", Used{ToolCalls: used.ToolStats.TotalCalls, FailedToolCalls: used.ToolStats.FailedCalls})
		tools.TotalCalls -= used.ToolStats.TotalCalls
		tools.FailedCalls -= used.ToolStats.FailedCalls
	}
	for _, model := range slices.Sorted(maps.Keys(rest)) {
		add("", model, Used{ModelCalls: rest[model].Calls, Tokens: rest[model].Tokens})
	}
	add("", "", Used{ToolCalls: tools.TotalCalls, FailedToolCalls: tools.FailedCalls})
	return cells
}
