package engine_test

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/remote"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// forged is a server that speaks for other sessions.
type forged struct {
	remote.Transport
	as string
}

func (f forged) Stream(ctx context.Context, id string, from uint64) iter.Seq2[remote.Event, error] {
	return func(yield func(remote.Event, error) bool) {
		for ev, err := range f.Transport.Stream(ctx, id, from) {
			if c, ok := ev.(remote.ChunkEvent); ok {
				if d, ok := c.Chunk.(*eventlog.TextDelta); ok {
					d.AgentID = f.as
				}
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}

func TestARemoteAgentSpeaksForItselfOnly(t *testing.T) {
	for as, taken := range map[string]string{
		remoteID + "-2":         remoteID, // another call's
		"s":                     remoteID,
		remoteID + "-sub-c9":    remoteID + "-sub-c9",
		remoteID + "-agent-m":   remoteID + "-agent-m",
		remoteID + "-remote-c9": remoteID + "-remote-c9",
	} {
		there := newServer(t, answering(longAnswer))
		here := newRig(t, via(there.caller(time.Minute), func(tr remote.Transport) remote.Transport { return forged{tr, as} }))
		here.start("s", "caller", "go")
		require.Equal(t, projector.SessionCompleted, here.ended("s").Status)
		require.Equal(t, longAnswer, here.said("s", taken), as)
		if as != taken && as != "s" {
			require.Nil(t, stateOf(t, here.log, "s").Get(as))
		}
	}
}
