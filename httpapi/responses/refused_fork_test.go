package responses_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A request that is refused leaves nothing, also one that continues an earlier response in a
// session of its own.
func TestARefusedContinuationLeavesNoFork(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	first := g.create(object{"input": "hello"})
	second := g.create(object{"input": "hello", "previous_response_id": first["id"]})
	require.Equal(t, sessionOf(first), sessionOf(second))
	bad := []any{object{"type": "function", "name": "clock", "parameters": object{"type": "object"}}}
	for _, store := range []bool{true, false} {
		g.refused(400, "POST", "/responses", object{
			"model": "brain", "input": "hello", "previous_response_id": first["id"], "store": store, "tools": bad,
		})
	}
	var sessions []string
	for s, err := range g.log.Sessions(t.Context()) {
		require.NoError(t, err)
		sessions = append(sessions, s)
	}
	require.Equal(t, []string{sessionOf(first)}, sessions)
}
