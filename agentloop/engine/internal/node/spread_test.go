package node

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
)

// idleNode is a work list on which node b is less busy.
type idleNode struct{ agentloop.Worklist }

func (idleNode) Lighter(string, int) string { return "b" }

// A tree that was taken to carry out an abort is not handed over: the other node would leave
// it to the one that it was taken from.
func TestForcedTakeOverStays(t *testing.T) {
	n := &Node{worklist: idleNode{}, live: map[string]*drivenTree{"s": newDriven(), "forced": newDriven()}}
	n.live["forced"].force = true
	require.True(t, n.spread("s", "x"))
	require.False(t, n.spread("forced", "x"))
	require.False(t, n.spread("gone", "x"))
}
