package sharedlock

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A gate is there for as long as somebody uses it, also who has outlived the
// run that began it.
func TestAGateIsForgotten(t *testing.T) {
	h := new(Table)
	g := h.Of("s")
	require.Same(t, g, h.Of("s"))
	h.Leave("s")
	require.Same(t, g, h.Of("s"))
	h.Leave("s")
	h.Leave("s")
	require.Empty(t, h.all)
}
