package projector_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/eventlog/stream"
	"github.com/helixd/helixd/projector"
)

// noter is an agent that calls tools, keeps state and answers.
func noter(t *testing.T, log eventlog.Log) *engine.Loop {
	t.Helper()
	note := agentloop.NewTool("note", "", func(ctx context.Context, c *agentloop.Call, in struct {
		Text string `json:"text"`
	}) (string, error) {
		return "noted " + in.Text, agentloop.UpdateState(c, func(s *map[string]any) error {
			(*s)[in.Text] = true
			return nil
		})
	})
	call := func(text string) scripted.Call {
		return scripted.Call{ID: "call_0", Name: "note", Arguments: json.RawMessage(`{"text":"` + text + `"}`)}
	}
	loop, err := engine.New(log, []agentloop.Agent{{Name: "noter", Tools: []agentloop.Tool{note}, Model: scripted.New([]scripted.Turn{
		{Reasoning: "I think.", Text: "Let me note.", ToolCalls: []scripted.Call{call("a")}},
		{Text: "And again.", ToolCalls: []scripted.Call{call("b")}},
		{Text: "That is all."},
	}, nil)}}, nil)
	require.NoError(t, err)
	return loop
}

// folded follows session s until its stream ends.
func folded(t *testing.T, log eventlog.Log) ([]eventlog.Record, *projector.Tree) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var records []eventlog.Record
	state := new(projector.Tree)
	for r, err := range log.Follow(ctx, "s", 0) {
		require.NoError(t, err)
		records = append(records, r)
		projector.Apply(state, r)
		if state.StreamStatus.Terminal() {
			break
		}
	}
	return records, state
}

// outcome is the result of a run. It leaves out ids of calls, times and checkpoints,
// since one checkpoint is missing if the rollback separated it from its step.
func outcome(t *testing.T, log eventlog.Log, s *projector.Tree) string {
	t.Helper()
	var said []string
	for _, m := range s.Messages {
		said = append(said, string(m.Role)+" "+m.Content+string(m.Result))
	}
	text, err := stream.CollectText(eventlog.Chunks(eventlog.Effective(t.Context(), log, "s", 0, 0)))
	require.NoError(t, err)
	return encoded(t, map[string]any{
		"messages": said, "text": text, "state": s.CustomState, "output": s.Output, "steps": s.StepCount, "status": s.Status,
		"stream": s.StreamStatus, "parked": s.Parked, "turn": s.Turn,
	})
}

// TestARunContinuesAfterARollbackToAnyRecord: the engine resumes there, and the outcome
// is the same as before.
func TestARunContinuesAfterARollbackToAnyRecord(t *testing.T) {
	defer goleak.VerifyNone(t)
	original := memory.New()
	loop := noter(t, original)
	_, err := loop.Start(t.Context(), engine.StartRequest{
		SessionID: "s", AgentType: "noter", Messages: []agentloop.Input{{Content: "go"}}, State: json.RawMessage(`{"here":true}`),
	})
	require.NoError(t, err)
	records, state := folded(t, original)
	loop.Stop()
	want := outcome(t, original, state)

	resumed := 0
	for n := 1; n < len(records); n++ {
		log := memory.New()
		for i, r := range records {
			_, err := log.Append(t.Context(), "s", uint64(i), []eventlog.Entry{r.Entry})
			require.NoError(t, err)
		}
		at := projector.Fold(records[:n]...)
		restore, err := projector.RestoreAt(at)
		require.NoError(t, err)
		marker, err := eventlog.Rollback(t.Context(), log, "s", records[n-1].Sequence, eventlog.RollbackOptions{Restore: restore})
		require.NoError(t, err)
		require.NotNil(t, marker)

		loop := noter(t, log)
		_, err = loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
		switch {
		case at.Status == projector.SessionCompleted:
			require.ErrorIs(t, err, agentloop.ErrAlreadyCompleted)
		case at.Turn == nil:
			require.ErrorIs(t, err, agentloop.ErrNothingToResume)
		default:
			require.NoError(t, err)
			resumed++
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			for r, err := range log.Follow(ctx, "s", marker.AtSequence) {
				require.NoError(t, err)
				if r.Type == "stream_end" {
					break
				}
			}
			cancel()
			tree := new(projector.Tree)
			for r, err := range log.Read(t.Context(), "s", 0, 0) {
				require.NoError(t, err)
				projector.Apply(tree, r)
			}
			require.Equal(t, want, outcome(t, log, tree), "from %d, %s", n, records[n-1].Type)
		}
		loop.Stop()
	}
	require.Greater(t, resumed, 30)
}
