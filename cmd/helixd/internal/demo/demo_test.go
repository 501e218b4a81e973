package demo

import (
	"strings"
	"testing"
	"time"

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

// TestTheStoryLastsLongEnough: a person has time to kill the daemon in the middle of it.
func TestTheStoryLastsLongEnough(t *testing.T) {
	lasts := time.Duration(len(strings.Fields(story))) * storyDelay
	require.Greater(t, lasts, 15*time.Second)
	require.Less(t, lasts, 30*time.Second)
}
