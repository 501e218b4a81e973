package httpapi_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector/readmodel"
	"github.com/helixd/helixd/projector/uimessage/uitest"
)

func falling(name string, err *model.Error) agentloop.Agent {
	return agentloop.Agent{Name: name, MaxRetries: -1, Model: scripted.New([]scripted.Turn{{Text: "I fall", Err: err}}, nil)}
}

// TestRecoverableIsTrue: the error of a stream says whether the same may succeed
// if it is tried again, as the failure's chunk does; to attached clients, to
// those that come later, and in a replay.
func TestRecoverableIsTrue(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, newLog(t), []agentloop.Agent{
		falling("busy", &model.Error{Code: model.CodeOverloaded, Message: "busy", Retryable: true}),
		falling("wrong", &model.Error{Code: "provider_auth_failed", Message: "no"}),
		{Name: "gated", Model: gatedModel{make(chan struct{})}},
	})
	recoverable := func(s *stream) (said bool) {
		_, _, last := s.rest()
		require.Equal(t, "error", last.name, last.data)
		var data struct{ Recoverable *bool }
		require.NoError(t, json.Unmarshal([]byte(last.data), &data))
		return *data.Recoverable
	}
	for agent, want := range map[string]bool{"busy": true, "wrong": false} {
		a.begin(agent, agent)
		require.Equal(t, want, recoverable(a.stream("/sse?sessionId="+agent)), agent)
		a.wait(agent)
		require.Equal(t, want, recoverable(a.stream("/sse?sessionId="+agent)), agent)
		require.Equal(t, want, recoverable(a.stream("/sessions/"+agent+"/replay?speed=0")), agent)
	}
	require.Equal(t, 200, a.post("/start", `{"sessionId":"stopped","agentType":"gated","message":"go"}`).status)
	s := a.stream("/sse?sessionId=stopped")
	require.Equal(t, 200, a.post("/abort", `{"sessionId":"stopped"}`).status)
	require.False(t, recoverable(s), "an abort is for good")
}

// TestNothingStreamsAfterAFailure: the text of a failed run is finished, in snapshots
// as in the stream.
func TestNothingStreamsAfterAFailure(t *testing.T) {
	t.Parallel()
	a := newChat(t, []agentloop.Agent{falling("busy", &model.Error{Code: "provider_auth_failed", Message: "no"})})
	a.chat(says("s", "busy", "go"))
	for _, target := range []string{"/chat/s/snapshot", "/chat/s/messages"} {
		parts := a.history(target).Messages[1].Parts
		require.Equal(t, "I fall", parts[1]["text"])
		require.Equal(t, "done", parts[1]["state"], target)
	}
}

// TestCostOfAMessage: the finish part of TextStreamParts has the cost if the model has prices.
func TestCostOfAMessage(t *testing.T) {
	t.Parallel()
	a := newChat(t, []agentloop.Agent{{Name: "a", Model: scripted.New([]scripted.Turn{{
		Text: "hi", Usage: fact.TokenUsage{Prompt: 10, Completion: 2, Total: 12},
	}}, nil)}})
	ask := func(session string) uitest.Part {
		got := a.post("/chat?format=text-stream-part", says(session, "a", "go"))
		require.Equal(t, 200, got.status, got.body)
		return parts(t, got.body).one(t, "finish")["metadata"].(map[string]any)
	}
	require.NotContains(t, ask("free"), "cost")
	a.srv.SetPrices(map[string]readmodel.Price{"scripted": {Input: 0.5, Output: 2}})
	require.InDelta(t, 9e-6, ask("priced")["cost"], 1e-12, "prices are those of a million tokens")
}
