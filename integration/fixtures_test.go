package integration_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model/modeltest"
	"github.com/helixd/helixd/agentloop/model/openai"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/snapshot"
)

// recorded is what a recorded provider stream says, written down by hand from
// the fixture.
type recorded struct {
	fixture   string
	reasoning string // its beginning
	text      string // its beginning
	textLen   int    // in bytes
	calls     []fact.ToolCall
	usage     fact.TokenUsage
	stop      fact.StopReason
	finish    eventlog.FinishReason
}

func recordings() []recorded {
	call := func(id, name, args string) []fact.ToolCall {
		return []fact.ToolCall{{ID: id, Name: name, Arguments: json.RawMessage(args)}}
	}
	return []recorded{
		{
			fixture: "openai-text", text: "**Holiday Name:** ",
			usage: fact.TokenUsage{Prompt: 16, Completion: 300, Total: 316},
			stop:  fact.StopEndTurn, finish: eventlog.FinishStop,
		},
		{
			fixture: "openai-azure-model-router.1", text: "Capital of Denmark.", textLen: 19,
			usage: fact.TokenUsage{Prompt: 15, Completion: 78, Reasoning: 64, Total: 93},
			stop:  fact.StopEndTurn, finish: eventlog.FinishStop,
		},
		{
			fixture: "xai-tool-call", reasoning: "First, the user is asking",
			calls: call("call_79382389", "weather", `{"location":"San Francisco"}`),
			// This provider's completion tokens leave the reasoning out.
			usage: fact.TokenUsage{Prompt: 307, Completion: 253, Reasoning: 227, Cached: 306, Total: 560},
			stop:  fact.StopToolUse, finish: eventlog.FinishToolCalls,
		},
		{
			fixture: "deepseek-tool-call", reasoning: "The user is asking",
			calls: call("call_00_ioIn7yN9p1ZOMNpDLwd4MgAF", "weather", `{"location": "San Francisco"}`),
			usage: fact.TokenUsage{Prompt: 339, Completion: 83, Reasoning: 39, Cached: 320, Total: 422},
			stop:  fact.StopToolUse, finish: eventlog.FinishToolCalls,
		},
		{
			fixture: "anthropic-fallback-tool-call", text: "Reading it.", textLen: 11,
			calls: call("toolu_sanitized", "read_file", `{"path": "a.txt"}`),
			stop:  fact.StopToolUse, finish: eventlog.FinishToolCalls,
		},
	}
}

// fromFixture reads the text and the reasoning of a recording without any of
// the code under test.
func fromFixture(s modeltest.Stream) (text, reasoning string) {
	for _, e := range s.Events {
		var chunk struct {
			Choices []struct {
				Delta struct {
					Content          string
					ReasoningContent string `json:"reasoning_content"`
				}
			}
		}
		if json.Unmarshal([]byte(e.Data), &chunk) == nil && len(chunk.Choices) > 0 {
			text += chunk.Choices[0].Delta.Content
			reasoning += chunk.Choices[0].Delta.ReasoningContent
		}
	}
	return text, reasoning
}

func TestRecordedProviderStreams(t *testing.T) {
	t.Parallel()
	for _, want := range recordings() {
		t.Run(want.fixture, func(t *testing.T) {
			stream := modeltest.Fixture(t, want.fixture)
			last := modeltest.Events(`{"choices":[{"index":0,"delta":{"content":"That is all."},"finish_reason":"stop"}]}`)
			provider := modeltest.Serve(t, stream, last)
			g := newRig(t, agentloop.Agent{
				Name: "recorded", SystemPrompt: "Be brief.",
				Model: openai.New("recorded-model", &openai.Options{APIKey: "none", BaseURL: provider.URL}),
				Tools: []agentloop.Tool{answering("weather"), answering("read_file")},
			})
			_, err := g.loop.Start(t.Context(), engine.StartRequest{
				SessionID: "s", AgentType: "recorded", Messages: []agentloop.Input{{Content: "Go."}},
			})
			require.NoError(t, err)
			state := g.ended(t, "s")
			checkRecording(t, g, want, stream, state)
			checkEveryState(t, g)
		})
	}
}

func answering(name string) agentloop.Tool {
	return agentloop.Tool{
		Name: name,
		Execute: func(_ context.Context, c *agentloop.Call, args json.RawMessage) (any, error) {
			return map[string]any{"seen": args}, agentloop.UpdateState(c, func(s *map[string]any) error {
				(*s)[c.ToolName] = "asked"
				return nil
			})
		},
	}
}

func checkRecording(t *testing.T, g *rig, want recorded, stream modeltest.Stream, state *projector.Tree) {
	text, reasoning := fromFixture(stream)
	require.True(t, strings.HasPrefix(text, want.text), text)
	require.True(t, strings.HasPrefix(reasoning, want.reasoning), reasoning)
	if want.textLen > 0 {
		require.Len(t, text, want.textLen)
	}

	// Chunks: what streamed is what the provider sent.
	var gotText, gotReasoning, wholeReasoning string
	args := map[string]string{}
	var steps []*eventlog.StepEnd
	var starts []*eventlog.ToolStart
	for r, err := range eventlog.Effective(t.Context(), g.log, "s", 0, 0) {
		require.NoError(t, err)
		if r.Kind != eventlog.KindChunk {
			continue
		}
		c, err := r.Chunk()
		require.NoError(t, err)
		if base := eventlog.BaseOf(c); base.Step > 1 {
			continue
		}
		switch c := c.(type) {
		case *eventlog.TextDelta:
			gotText += c.Delta
		case *eventlog.Thinking:
			if c.IsComplete {
				wholeReasoning += c.Content
			} else {
				gotReasoning += c.Content
			}
		case *eventlog.ToolArgStreamDelta:
			args[c.ToolCallID] += c.Delta
		case *eventlog.ToolStart:
			starts = append(starts, c)
		case *eventlog.StepEnd:
			steps = append(steps, c)
		}
	}
	require.Equal(t, text, gotText)
	require.Equal(t, reasoning, gotReasoning)
	require.Equal(t, reasoning, wholeReasoning)
	require.Len(t, starts, len(want.calls))
	for i, c := range want.calls {
		require.Equal(t, string(c.Arguments), args[c.ID], "arguments as they streamed")
		require.Equal(t, c.ID, starts[i].ToolCallID)
		require.JSONEq(t, string(c.Arguments), string(starts[i].Arguments))
	}
	require.Len(t, steps, 1)
	require.Equal(t, want.finish, *steps[0].FinishReason)
	require.Equal(t, want.usage.Prompt, steps[0].Usage.InputTokens)
	require.Equal(t, want.usage.Completion, steps[0].Usage.OutputTokens)

	// Messages: the user's, the recorded answer, its results, the last answer.
	answer := state.Messages[1]
	require.Equal(t, projector.RoleAssistant, answer.Role)
	require.Equal(t, text, answer.Content)
	require.Equal(t, want.stop, answer.StopReason)
	var parts []fact.TurnPart
	if reasoning != "" {
		parts = append(parts, fact.TurnPart{Reasoning: reasoning})
	}
	if text != "" {
		parts = append(parts, fact.TurnPart{Text: text})
	}
	for _, c := range want.calls {
		parts = append(parts, fact.TurnPart{ToolCall: &c})
	}
	require.Len(t, answer.Parts, len(parts))
	for i := range parts {
		if parts[i].ToolCall != nil {
			require.JSONEq(t, string(parts[i].ToolCall.Arguments), string(answer.Parts[i].ToolCall.Arguments))
			parts[i].ToolCall, answer.Parts[i].ToolCall.Arguments = answer.Parts[i].ToolCall, parts[i].ToolCall.Arguments
		}
		require.Equal(t, parts[i], answer.Parts[i])
	}
	if len(want.calls) > 0 {
		require.Len(t, state.Messages, 3+len(want.calls))
		require.Equal(t, want.calls[0].ID, state.Messages[2].ToolCallID)
		require.JSONEq(t, `{"`+want.calls[0].Name+`":"asked"}`, state.CustomState.String())
	} else {
		require.Len(t, state.Messages, 2)
	}
	require.Equal(t, want.usage, state.Usage.Tokens)
	require.Equal(t, projector.SessionCompleted, state.Status)
	require.Empty(t, state.Parked)
}

// checkEveryState compares the state at every n with a fresh fold of the
// first records.
func checkEveryState(t *testing.T, g *rig) {
	fresh := new(projector.Tree)
	states := snapshot.New(g.log, nil)
	n := 0
	for r, err := range g.log.Read(t.Context(), "s", 0, 0) {
		require.NoError(t, err)
		projector.Apply(fresh, r)
		at, err := states.At(t.Context(), "s", r.Sequence)
		require.NoError(t, err)
		require.Equal(t, marshal(t, fresh), marshal(t, at), "state at %d", r.Sequence)
		n++
	}
	require.Greater(t, n, 5)
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return string(raw)
}
