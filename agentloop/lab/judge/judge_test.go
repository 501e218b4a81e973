package judge

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/lab/result"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog/fact"
)

// counting counts the calls of a model, and keeps the last request.
type counting struct {
	model.Model
	calls int
	last  model.Request
}

func (c *counting) Generate(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
	c.calls++
	c.last = req
	return c.Model.Generate(ctx, req, emit)
}

func lane(output string) result.Lane {
	return result.Lane{Outcome: "completed", Output: output, Decisions: []result.Decision{result.NewDecision(result.ToolCall, "", "search", []byte(`{"q":1}`))}}
}

func TestAJudgeIsAskedOnceALane(t *testing.T) {
	m := &counting{Model: scripted.New([]scripted.Turn{{Text: "Well: {\"pass\": false, \"reason\": \"rude\"}\n", Usage: fact.TokenUsage{Prompt: 7, Completion: 2}}}, nil)}
	j := New(m, "A good session is polite.")
	got, usage, err := j.Lane(t.Context(), lane("No."))
	require.NoError(t, err)
	require.Equal(t, result.Judgement{Reason: "rude"}, got)
	require.Equal(t, int64(7), usage.Prompt)
	require.Contains(t, m.last.System, "A good session is polite.")
	require.Equal(t, "tool-call search {\"q\":1}\noutcome completed \noutput No.\n", m.last.Messages[0].Content)

	_, usage, err = j.Lane(t.Context(), lane("No."))
	require.NoError(t, err)
	require.Zero(t, usage)
	_, _, err = j.Lane(t.Context(), lane("Yes."))
	require.NoError(t, err)
	require.Equal(t, 2, m.calls)
	require.Equal(t, j.Prompt(), j.Report().Prompt)
}

func TestAnswersThatAreNoJudgement(t *testing.T) {
	for _, said := range []string{"pass", "{}", "{\"pass\": \"yes\"}", "}{"} {
		_, _, err := New(scripted.New([]scripted.Turn{{Text: said}}, nil), "x").Lane(t.Context(), lane(""))
		require.ErrorContains(t, err, "the model does not answer")
	}
}

func TestAFailedCallOfTheJudgeIsRetried(t *testing.T) {
	synctest.Test(t, retried)
}

func retried(t *testing.T) {
	failing := &counting{Model: scripted.New([]scripted.Turn{{Err: &model.Error{Code: model.CodeOverloaded, Retryable: true}}}, nil)}
	_, _, err := New(failing, "x").Lane(t.Context(), lane(""))
	require.ErrorContains(t, err, model.CodeOverloaded)
	require.Equal(t, attempts, failing.calls)
}
