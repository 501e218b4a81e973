package agentloop_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
)

// TestAnUnknownAgentsErrorNamesThoseThatThereAre, but not hundreds.
func TestAnUnknownAgentsErrorNamesThoseThatThereAre(t *testing.T) {
	require.EqualError(t, &agentloop.UnknownAgentError{AgentType: "wether", Known: []string{"guide", "weather"}},
		`agentloop: unknown agent type "wether"; known are guide, weather`)
	require.EqualError(t, &agentloop.UnknownAgentError{AgentType: "x"}, `agentloop: unknown agent type "x"; this node runs no agents`)
	e := &agentloop.UnknownAgentError{AgentType: "x"}
	for i := range 25 {
		e.Known = append(e.Known, fmt.Sprint("a", i))
	}
	require.ErrorContains(t, e, "a19 and 5 more")
	require.ErrorIs(t, e, agentloop.ErrUnknownAgent)
}
