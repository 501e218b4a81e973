package worklist_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model/scripted"
)

func speaking(name string) agentloop.Agent {
	return agentloop.Agent{Name: name, Model: scripted.New([]scripted.Turn{{Text: "hello"}}, nil)}
}

// TestRehost: other nodes hear which agents a node has got and lost, and it
// takes up what waited for one that nobody had.
func TestRehost(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	front := s.node("front")
	works := s.node("works", speaking("kept"))
	works.set(t, speaking("kept"), speaking("new"))
	require.Eventually(t, func() bool { return front.list.Hosted("new") }, within, time.Millisecond)
	s.start(front, "s1", "new")
	s.start(front, "s2", "kept")
	s.until("s1", completed)
	s.until("s2", completed)

	works.set(t, speaking("kept"))
	require.Eventually(t, func() bool { return !front.list.Hosted("new") }, within, time.Millisecond)
	_, err := s.begin(front, "s3", "new")
	require.ErrorIs(t, err, agentloop.ErrUnknownAgent)
	s.orphan(front.list, "s4", "new", 0)
	works.set(t, speaking("new"))
	s.until("s4", completed)
	require.Eventually(t, func() bool { return front.list.Hosted("new") }, within, time.Millisecond)

	works.list.Leave()
	works.set(t, speaking("kept"))
	require.False(t, front.list.Hosted("kept"), "it leaves")
}

// set gives the node other agents.
func (n *node) set(t *testing.T, agents ...agentloop.Agent) {
	t.Helper()
	_, err := n.loop.SetAgents(agents)
	require.NoError(t, err)
	require.NoError(t, n.list.Rehost())
}
