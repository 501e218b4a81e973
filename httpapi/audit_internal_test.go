package httpapi

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The first line of a period says how many were left out before it.
func TestRefusalsTake(t *testing.T) {
	var f refusals
	now := time.Unix(1000, 0)
	for range refusalLines {
		skipped, ok := f.take(now)
		require.True(t, ok)
		require.Zero(t, skipped)
	}
	for range 5 {
		_, ok := f.take(now.Add(refusalPeriod - 1))
		require.False(t, ok)
	}
	skipped, ok := f.take(now.Add(refusalPeriod))
	require.True(t, ok)
	require.Equal(t, 5, skipped)
	skipped, ok = f.take(now.Add(refusalPeriod))
	require.True(t, ok)
	require.Zero(t, skipped)
}
