package helixd_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/helixd/helixd"
	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model/scripted"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// guide looks at the weather of a city, and answers.
func guide(cities *[]string) agentloop.Agent {
	weather := agentloop.NewTool("weather", "The weather in a city.",
		func(_ context.Context, _ *agentloop.Call, in struct {
			City string `json:"city"`
		}) (string, error) {
			*cities = append(*cities, in.City)
			return "fog", nil
		})
	return agentloop.Agent{
		Name: "guide", Tools: []agentloop.Tool{weather},
		Model: scripted.New([]scripted.Turn{
			{Text: "Let me look. ", ToolCalls: []scripted.Call{{Name: "weather", Arguments: []byte(`{"city":"Lisbon"}`)}}},
			{Text: "There is fog in Lisbon."},
		}, nil),
	}
}

// TestAConversationOutlivesItsProcess: two turns, with the node closed and opened in
// between; the second one sees the first.
func TestAConversationOutlivesItsProcess(t *testing.T) {
	dir := t.TempDir()
	var cities []string
	for turn := 1; turn <= 2; turn++ {
		node, err := helixd.Open(t.Context(), dir, guide(&cities))
		require.NoError(t, err)
		run, err := node.Say(t.Context(), "guide", "trip", "Is there fog?")
		require.NoError(t, err)
		var answer strings.Builder
		for text, err := range run.Text(t.Context()) {
			require.NoError(t, err)
			answer.WriteString(text)
		}
		require.Equal(t, "Let me look. There is fog in Lisbon.", answer.String())
		result, err := run.Result(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, "completed", result.Status)
		require.Len(t, cities, turn)
		node.Close()
	}
}

// TestRunsContinueAtTheNextOpen: a run that the closing of its node has cut off is finished by the next
// one, without a further request.
func TestRunsContinueAtTheNextOpen(t *testing.T) {
	dir := t.TempDir()
	begun, release := make(chan struct{}), make(chan struct{})
	wait := agentloop.NewTool("wait", "Waits.", func(ctx context.Context, _ *agentloop.Call, _ struct{}) (string, error) {
		close(begun)
		select {
		case <-release:
		case <-ctx.Done():
		}
		return "done", ctx.Err()
	})
	patient := func(tool agentloop.Tool) agentloop.Agent {
		return agentloop.Agent{Name: "patient", Tools: []agentloop.Tool{tool}, Model: scripted.New([]scripted.Turn{
			{ToolCalls: []scripted.Call{{Name: "wait", Arguments: []byte(`{}`)}}}, {Text: "At last."},
		}, nil)}
	}
	node, err := helixd.Open(t.Context(), dir, patient(wait))
	require.NoError(t, err)
	_, err = node.Say(t.Context(), "patient", "s", "Go.")
	require.NoError(t, err)
	<-begun
	node.Close()

	quick := agentloop.NewTool("wait", "Waits.", func(context.Context, *agentloop.Call, struct{}) (string, error) { return "done", nil })
	node, err = helixd.Open(t.Context(), dir, patient(quick))
	require.NoError(t, err)
	defer node.Close()
	run, err := node.Loop.Handle(t.Context(), "s")
	require.NoError(t, err)
	result, err := run.Result(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status)
	require.JSONEq(t, `"At last."`, string(result.Output))
}

// TestWhatCannotBeOpenedSaysWhy: a folder that is open already, and an agent without a model.
func TestWhatCannotBeOpenedSaysWhy(t *testing.T) {
	dir := t.TempDir()
	node, err := helixd.Open(t.Context(), dir)
	require.NoError(t, err)
	defer node.Close()
	_, err = helixd.Open(t.Context(), dir)
	require.ErrorContains(t, err, "in use")
	_, err = helixd.Open(t.Context(), t.TempDir(), agentloop.Agent{Name: "mute"})
	var fault *agentloop.AgentError
	require.ErrorAs(t, err, &fault)
	require.Equal(t, "mute", fault.Agent)
	_, err = node.Say(t.Context(), "nobody", "s", "Hi.")
	require.ErrorIs(t, err, agentloop.ErrUnknownAgent)
	require.ErrorContains(t, err, `"nobody"`)
}

// BenchmarkOpen is the time until a node serves, and until it is closed again.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	var cities []string
	for b.Loop() {
		node, err := helixd.Open(b.Context(), dir, guide(&cities))
		require.NoError(b, err)
		node.Close()
	}
}
