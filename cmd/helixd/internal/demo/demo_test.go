package demo

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog/memory"
)

// TestDemoAgents: dev starts.
func TestDemoAgents(t *testing.T) {
	loop, err := engine.New(memory.New(), Agents(), nil)
	require.NoError(t, err)
	loop.Stop()
}
