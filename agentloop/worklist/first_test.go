package worklist_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/integration/testkit"
)

// Of the nodes that live one is the first; when it has died, or left, the next
// one is.
func TestFirst(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	s := newSite(t)
	nodes := []*node{s.node("a"), s.node("b"), s.node("c")}
	only := func(want int) {
		t.Helper()
		require.Eventually(t, func() bool {
			for i, n := range nodes[want:] {
				if n.list.First() != (i == 0) {
					return false
				}
			}
			return true
		}, within, 10*time.Millisecond, "not only %s is the first", nodes[want].name)
	}
	only(0)
	nodes[0].die()
	only(1)
	require.False(t, nodes[0].list.First(), "a dead one hears not even itself")
	nodes[1].list.Leave()
	require.False(t, nodes[1].list.First())
	only(2)
}
