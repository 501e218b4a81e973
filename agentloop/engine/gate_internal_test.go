package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A gate is there for as long as somebody uses it, also who has outlived the
// run that began it.
func TestAGateIsForgotten(t *testing.T) {
	l := &Loop{gates: map[string]*gate{}}
	g := l.gateOf("s")
	require.Same(t, g, l.gateOf("s"))
	l.leaveGate("s")
	require.Same(t, g, l.gateOf("s"))
	l.leaveGate("s")
	l.leaveGate("s")
	require.Empty(t, l.gates)
}
