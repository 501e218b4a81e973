package store

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheRecordsThatANodeKnowsAreBounded: when they are many, it drops them and checks
// again.
func TestTheRecordsThatANodeKnowsAreBounded(t *testing.T) {
	t.Parallel()
	var c checkedRecords
	for i := range 2*mostChecked + 1 {
		session := strconv.Itoa(i)
		c.add(session, 7)
		require.True(t, c.has(session, 7))
		require.False(t, c.has(session, 8))
	}
	require.LessOrEqual(t, len(c.of), mostChecked)
	require.False(t, c.has("0", 7))
}
