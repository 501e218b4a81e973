package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
)

// BenchmarkStreamedDelta measures a run whose model streams as fast as it can, to a
// log in memory. One operation is one delta, written and folded.
func BenchmarkStreamedDelta(b *testing.B) {
	m := modelFunc(func(_ context.Context, _ model.Request, emit func(model.Event) error) (model.Answer, error) {
		b.ResetTimer()
		for range b.N {
			if err := emit(model.TextDelta{Text: "a word or \"two\" "}); err != nil {
				return model.Answer{}, err
			}
		}
		return model.Answer{StopReason: fact.StopEndTurn}, nil
	})
	loop, err := engine.New(memory.New(), []agentloop.Agent{{Name: "a", Model: m}}, nil)
	require.NoError(b, err)
	defer loop.Stop()
	b.ReportAllocs()
	h, err := loop.Execute(b.Context(), engine.StartRequest{
		SessionID: "s", AgentType: "a", Messages: []agentloop.Input{{Content: "go"}},
	})
	require.NoError(b, err)
	_, err = h.Result(b.Context())
	b.StopTimer()
	require.NoError(b, err)
}
