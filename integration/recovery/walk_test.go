package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The claim separates the chunks of another node from those of the first one.
func TestAround(t *testing.T) {
	w := &walk{seen: []sighting{{sequence: 3, kind: said}, {sequence: 5, kind: said}, {sequence: 8, kind: "stream_resync"}, {sequence: 9, kind: said}}}
	before, behind, words := w.around(6)
	require.Equal(t, []uint64{5, 8, 9}, []uint64{before.sequence, behind.sequence, words.sequence})
	require.True(t, w.saidAfter(6))
	require.False(t, w.saidAfter(9))
}
