package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A gate is there for as long as somebody uses it, also who has outlived the
// run that began it.
func TestAGateIsForgotten(t *testing.T) {
	h := new(gates)
	g := h.of("s")
	require.Same(t, g, h.of("s"))
	h.leave("s")
	require.Same(t, g, h.of("s"))
	h.leave("s")
	h.leave("s")
	require.Empty(t, h.all)
}
