package integration_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/jetstreamtest"
	"github.com/helixd/helixd/projector"
)

// rig is a loop on its own JetStream log.
type rig struct {
	log  eventlog.Log
	loop *engine.Loop
}

func newRig(t *testing.T, agents ...agentloop.Agent) *rig {
	t.Helper()
	_, nc := embedtest.Start(t, embed.Options{})
	log := jetstreamtest.Open(t, nc, &jetstream.Options{Durability: eventlog.DurabilityFsync})
	loop, err := engine.New(log, agents, nil)
	require.NoError(t, err)
	t.Cleanup(loop.Stop)
	return &rig{log: log, loop: loop}
}

// ended waits until the session's stream ends and returns its state.
func (g *rig) ended(t *testing.T, session string) *projector.Tree {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), clusterPatience)
	defer cancel()
	state := new(projector.Tree)
	for r, err := range g.log.Follow(ctx, session, 0) {
		require.NoError(t, err)
		projector.Apply(state, r)
		if state.StreamStatus.Terminal() {
			break
		}
	}
	return state
}
