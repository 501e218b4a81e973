package demo

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/engine/timetravel"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
)

// Who has found out what was wrong goes back to where a person approved, and
// says no: the agents are there, and take another way.
func TestTheDemoIncidentGoesOnOtherwise(t *testing.T) {
	log := memory.New()
	dir := t.TempDir()
	require.NoError(t, ImportIncident(t.Context(), log, dir))
	require.NoError(t, ImportIncident(t.Context(), log, dir))
	var asked uint64
	var pending string
	before := new(projector.Tree)
	for r, err := range log.Read(t.Context(), Incident, 0, 0) {
		require.NoError(t, err)
		projector.Apply(before, r)
		if r.Type == "stream_paused" {
			asked, pending = r.Sequence, before.AwaitedCalls()[0].Call.ID
			require.JSONEq(t, `{"case":{"number":"C-17","payment":"pay_882","euros":4250,"status":"open","approved":false,"declined":0}}`, before.CustomState.String())
		}
	}
	require.Equal(t, projector.SessionFailed, before.Status)

	loop, err := engine.New(log, Agents(), nil)
	require.NoError(t, err)
	defer loop.Stop()
	forked, err := loop.TimeTravel.Fork(t.Context(), timetravel.ForkRequest{FromSessionID: Incident, At: timetravel.Target{Sequence: asked}, NewSessionID: "fork"})
	require.NoError(t, err)
	require.Equal(t, "fork", forked.SessionID)
	_, err = loop.Submit(t.Context(), engine.Submission{
		SessionID: "fork", ToolCallID: pending, Kind: fact.SubmitApproval, Reason: "42.50, not 4,250.",
	})
	require.NoError(t, err)
	_, err = loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "fork"})
	require.NoError(t, err)
	after := new(projector.Tree)
	for r, err := range log.Follow(t.Context(), "fork", 0) {
		require.NoError(t, err)
		projector.Apply(after, r)
		if after.StreamStatus.Terminal() {
			break
		}
	}
	require.Equal(t, projector.SessionCompleted, after.Status)
	require.Contains(t, string(after.Output), "42.50, not 4,250.")
}
