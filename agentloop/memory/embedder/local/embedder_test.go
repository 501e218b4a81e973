package local_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/memory/embedder/local"
	"github.com/helixd/helixd/eventlog/fact"
)

func embed(t *testing.T, e *local.Embedder, texts ...string) [][]float32 {
	t.Helper()
	vectors, err := e.Embed(t.Context(), texts)
	require.NoError(t, err)
	require.Len(t, vectors, len(texts))
	return vectors
}

func cosine(a, b []float32) float64 {
	var dot float64
	for i := range a {
		dot += float64(a[i]) * float64(b[i])
	}
	return dot
}

// TestWhatIsStoredStaysComparable: vectors are in logs, so that what a model's
// name stands for must never change. A failure here asks for another name.
func TestWhatIsStoredStaysComparable(t *testing.T) {
	e := local.New(8)
	require.Equal(t, "helixd-hash-1-8", e.Model())
	require.Equal(t, "helixd-hash-1-256", local.New(0).Model())
	require.InDeltaSlice(t,
		[]float32{0.03536168, -0.010657328, 0, 0.25688937, -0.16380636, 0.84324944, -0.4129038, 0.1557309},
		embed(t, e, "My dog is called Rex.")[0], 1e-6)
	require.Equal(t, embed(t, e, "my dog likes phở"), embed(t, e, "ＭＹ DOG LIKES PHO"), "forms of characters don't matter")
}

func TestVectors(t *testing.T) {
	for _, dimensions := range []int{1, 2, 256, fact.MaxDimensions} {
		e := local.New(dimensions)
		for i, v := range embed(t, e, "a", "", "  ", "🙂", "\xff", "東京", strings.Repeat("the end ", 2000)) {
			require.Len(t, v, dimensions)
			require.InDelta(t, 1, math.Sqrt(cosine(v, v)), 1e-5, i)
		}
	}
	require.Panics(t, func() { local.New(-1) })
	require.Panics(t, func() { local.New(fact.MaxDimensions + 1) })
}

func TestNearness(t *testing.T) {
	v := embed(t, local.New(0),
		"The user's dog is called Rex.", "What is my dog called?", "REX is the DOG of the user", "What is the capital of France?",
		"The user walked home.", "Why is the user walking?")
	require.InDelta(t, cosine(v[0], v[0]), 1, 1e-5)
	require.Greater(t, cosine(v[0], v[1]), 0.4)
	require.Greater(t, cosine(v[0], v[2]), 0.4, "in another order and case")
	require.Less(t, cosine(v[0], v[3]), 0.25, "words that all sentences share weigh little")
	require.Greater(t, cosine(v[4], v[5]), 0.25, "forms of a word are near")
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := local.New(0).Embed(ctx, []string{"x"})
	require.ErrorIs(t, err, context.Canceled)
}
