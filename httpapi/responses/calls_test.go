package responses

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A call id that a model uses again and again is another one each time for clients, and leads back
// to the model's.
func TestCallIDs(t *testing.T) {
	t.Parallel()
	f, seen := newFolder("s", "run-1", nil), map[string]bool{}
	for range 20 {
		id := f.callID("call")
		require.False(t, seen[id], id)
		require.Equal(t, "call", shownCall(id))
		seen[id] = true
	}
}
