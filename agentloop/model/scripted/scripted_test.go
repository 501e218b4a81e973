package scripted_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog/fact"
)

// say makes a call and returns its events.
func say(t *testing.T, m model.Model, roles ...model.Role) (model.Answer, []model.Event) {
	t.Helper()
	var events []model.Event
	answer, err := m.Generate(t.Context(), request(roles...), func(e model.Event) error {
		events = append(events, e)
		return nil
	})
	require.NoError(t, err)
	return answer, events
}

func request(roles ...model.Role) model.Request {
	var req model.Request
	for _, role := range roles {
		req.Messages = append(req.Messages, model.Message{Role: role})
	}
	return req
}

const (
	user      = model.RoleUser
	assistant = model.RoleAssistant
	tool      = model.RoleTool
)

func TestTurnsFollowTheConversation(t *testing.T) {
	m := scripted.New([]scripted.Turn{
		{Reasoning: "hm, so", Text: "I  look. ", ToolCalls: []scripted.Call{
			{Name: "look", Arguments: json.RawMessage(`{"at": "it"}`)},
			{ID: "own", Name: "nod"},
		}},
		{Text: "Done.", StopReason: fact.StopMaxTokens, Usage: fact.TokenUsage{Prompt: 2, Completion: 3, Reasoning: 1}},
	}, nil)

	first := []model.Event{
		model.ReasoningDelta{Text: "hm, "},
		model.ReasoningDelta{Text: "so"},
		model.TextDelta{Text: "I "},
		model.TextDelta{Text: " "},
		model.TextDelta{Text: "look. "},
		model.ToolCallStart{Call: 0, ID: "call_0_0", Name: "look"},
		model.ToolCallDelta{Call: 0, Text: `{"at": `},
		model.ToolCallDelta{Call: 0, Text: `"it"}`},
		model.ToolCallEnd{Call: 0},
		model.ToolCallStart{Call: 1, ID: "own", Name: "nod"},
		model.ToolCallDelta{Call: 1, Text: `{}`},
		model.ToolCallEnd{Call: 1},
	}
	for _, roles := range [][]model.Role{
		nil, {user}, {user}, {user, assistant, tool, assistant, user},
	} {
		answer, events := say(t, m, roles...)
		require.Equal(t, model.Answer{Model: "scripted", StopReason: fact.StopToolUse}, answer)
		require.Equal(t, first, events)
	}
	for _, roles := range [][]model.Role{
		{user, assistant, tool, tool},
		{user, assistant, tool, assistant, tool}, // beyond the script
		{user, assistant, user, assistant},
	} {
		answer, events := say(t, m, roles...)
		require.Equal(t, model.Answer{
			Model:      "scripted",
			StopReason: fact.StopMaxTokens,
			Usage:      fact.TokenUsage{Prompt: 2, Completion: 3, Reasoning: 1, Total: 5},
		}, answer)
		require.Equal(t, []model.Event{model.TextDelta{Text: "Done."}}, events)
	}
}

func TestRepeatedTurnsHaveFreshCallIDs(t *testing.T) {
	m := scripted.New([]scripted.Turn{{ToolCalls: []scripted.Call{{Name: "again"}}}}, nil)
	_, events := say(t, m, user, assistant, tool, assistant, tool)
	require.Equal(t, model.ToolCallStart{ID: "call_2_0", Name: "again"}, events[0])
}

func TestPieces(t *testing.T) {
	for _, words := range []int{0, 1, 2, 3, 100} {
		for _, text := range []string{"", " ", "one", "a b c d e", "  a  b ", "é ü\n\tx ", "a b c "} {
			m := scripted.New([]scripted.Turn{{Text: text}}, &scripted.Options{Name: "n", Words: words})
			answer, events := say(t, m, user)
			require.Equal(t, model.Answer{Model: "n", StopReason: fact.StopEndTurn}, answer)
			joined := ""
			for _, e := range events {
				require.NotEmpty(t, e.(model.TextDelta).Text)
				joined += e.(model.TextDelta).Text
			}
			require.Equal(t, text, joined)
		}
	}
	_, events := say(t, scripted.New([]scripted.Turn{{Text: "a b c"}}, &scripted.Options{Words: 2}), user)
	require.Equal(t, []model.Event{model.TextDelta{Text: "a b "}, model.TextDelta{Text: "c"}}, events)
}

func TestDelayIsBetweenPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		say(t, scripted.New([]scripted.Turn{{Text: "a b c"}}, &scripted.Options{Delay: time.Hour}), user)
		require.Equal(t, 2*time.Hour, time.Since(start))
	})
}

func TestContextEndsTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := scripted.New([]scripted.Turn{{Text: "a b c"}}, &scripted.Options{Delay: time.Hour})
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Minute)
		defer cancel()
		start, n := time.Now(), 0
		count := func(model.Event) error { n++; return nil }
		_, err := m.Generate(ctx, request(user), count)
		var e *model.Error
		require.ErrorAs(t, err, &e)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, model.CodeTimeout, e.Code)
		require.True(t, e.Retryable)
		require.Equal(t, 90*time.Minute, time.Since(start))
		require.Equal(t, 2, n)

		ctx, cancel = context.WithCancel(t.Context())
		cancel()
		_, err = m.Generate(ctx, request(user), count)
		require.ErrorAs(t, err, &e)
		require.ErrorIs(t, err, context.Canceled)
		require.False(t, e.Retryable)
		require.Equal(t, 2, n, "nothing is said after the end")
	})
}

func TestErrors(t *testing.T) {
	failure := &model.Error{Code: model.CodeOverloaded, Message: "busy", Retryable: true}
	m := scripted.New([]scripted.Turn{{Text: "half an", Err: failure}}, nil)
	n := 0
	answer, err := m.Generate(t.Context(), request(user), func(model.Event) error { n++; return nil })
	require.Zero(t, answer)
	require.Equal(t, failure, err)
	require.Equal(t, 2, n, "it fails after what it says")

	stop := errors.New("stop")
	_, err = m.Generate(t.Context(), request(user), func(model.Event) error { return stop })
	require.Same(t, stop, err)

	require.Panics(t, func() { scripted.New(nil, nil) })
}

func TestScriptsInFiles(t *testing.T) {
	want := []scripted.Turn{
		{Reasoning: "hm", ToolCalls: []scripted.Call{
			{ID: "a", Name: "weather", Arguments: json.RawMessage(`{"city":"Paris","days":[1,2]}`)},
			{Name: "now"},
		}},
		{Text: "Rain.", StopReason: fact.StopEndTurn, Usage: fact.TokenUsage{Prompt: 1, Completion: 2, Total: 3}},
	}
	var fromYAML, fromJSON struct {
		Turns []scripted.Turn `json:"turns" yaml:"turns"`
	}
	require.NoError(t, yaml.UnmarshalWithOptions([]byte(`
turns:
  - reasoning: hm
    toolCalls:
      - {id: a, name: weather, arguments: {city: Paris, days: [1, 2]}}
      - name: now
  - text: Rain.
    stopReason: end_turn
    usage: {prompt: 1, completion: 2, total: 3}
`), &fromYAML, yaml.Strict()))
	require.Equal(t, want, fromYAML.Turns)

	text, err := json.Marshal(map[string]any{"turns": want})
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &fromJSON))
	require.Equal(t, want, fromJSON.Turns)

	require.Error(t, yaml.UnmarshalWithOptions([]byte(`turns: [{toolCalls: [{nam: x}]}]`), &fromYAML, yaml.Strict()))
}
