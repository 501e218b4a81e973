package readmodel_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector/readmodel"
)

func TestCost(t *testing.T) {
	tokens := fact.TokenUsage{Prompt: 1000, Cached: 300, CacheWrite: 100, Completion: 500, Reasoning: 200, Total: 1500}
	for _, tc := range []struct {
		name  string
		price readmodel.Price
		want  float64
	}{
		{"two prices are for everything", readmodel.Price{Input: 2, Output: 10}, (1000*2 + 500*10) / 1e6},
		{
			"each kind has its own", readmodel.Price{Input: 2, Output: 10, CachedInput: new(1.0), CacheWrite: new(4.0), Reasoning: new(20.0)},
			(600*2 + 300*1 + 100*4 + 300*10 + 200*20) / 1e6,
		},
		{"what is free is free", readmodel.Price{Input: 2, Output: 10, CachedInput: new(0.0)}, (700*2 + 500*10) / 1e6},
		{"nothing is free of charge", readmodel.Price{}, 0},
	} {
		require.InDelta(t, tc.want, tc.price.Cost(tokens), 1e-12, tc.name)
	}
	odd := fact.TokenUsage{Prompt: 1, Cached: 5, Completion: 1, Reasoning: 5}
	require.InDelta(t, (5*2+5*10)/1e6, readmodel.Price{Input: 2, Output: 10}.Cost(odd), 1e-12, "never less than nothing")
}

func TestPaging(t *testing.T) {
	got, err := readmodel.Paging{}.Check()
	require.NoError(t, err)
	require.Equal(t, readmodel.Paging{Limit: readmodel.DefaultPage}, got)
	for field, p := range map[string]readmodel.Paging{
		"offset": {Offset: -1, Limit: 1}, "limit": {Limit: readmodel.MaxPage + 1},
	} {
		_, err := p.Check()
		var bad *readmodel.QueryError
		require.ErrorAs(t, err, &bad)
		require.Equal(t, field, bad.Field)
	}
}
