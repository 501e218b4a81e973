package drive

import (
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/metrics"
	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/agentloop/internal/plan"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
)

// The deadline of a sub-agent's call passes while the sub-agent's end is being
// looked at. The call gets the sub-agent's output, and nothing else before.
func TestADeadlineThatMeetsTheEndWritesNothing(t *testing.T) {
	log := memory.New()
	m := scripted.New([]scripted.Turn{{Text: "never"}}, nil)
	defs, err := plan.Compile([]agentloop.Agent{
		{Name: "boss", Model: m, SubAgents: []agentloop.SubAgent{{Agent: "kid"}}},
		{Name: "kid", Model: m, OutputSchema: json.RawMessage(`{"type":"object"}`)},
	})
	require.NoError(t, err)
	h := &Host{Clock: record.Clock{Now: time.Now}, Log: log, Logger: slog.New(slog.DiscardHandler), Metrics: metrics.New(nil)}
	call := projector.Call{
		ToolCall: fact.ToolCall{ID: "c", Name: "subagent__kid", Arguments: json.RawMessage(`{}`)}, RunID: "r",
		Pending: &projector.Pending{Kind: fact.PendingChild, Child: "s-sub-c", Deadline: 1},
	}
	tree := &projector.Tree{
		Session: projector.Session{SessionID: "s", AgentType: "boss", Turn: &projector.Turn{Number: 1, RunID: "r"}},
		Children: map[string]*projector.Session{"s-sub-c": {
			SessionID: "s-sub-c", AgentType: "kid", Status: projector.SessionCompleted, TurnCount: 1, Output: json.RawMessage(`{}`),
			Child: &fact.SubSession{ParentSessionID: "s", CallID: "c", Mode: fact.SubSessionEphemeral},
		}},
	}
	r := &Tree{host: h, root: "s", id: "w", tree: tree, defs: defs, w: eventlog.NewWriter(log, "s", eventlog.WriterOptions{ID: "w"})}
	defer r.w.Stop()
	e := decide.AwaitDeadline{Session: "s", StepID: "turn-1-step-1", Call: call, At: 1}
	require.NoError(t, r.newTask(t.Context(), e).perform(e))
	_, err = log.Head(t.Context(), "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
}
