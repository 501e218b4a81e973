package responses

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// A background response whose request continues an open turn stays queued until a node claims its run: the
// chunk run_resumed is appended with the request.
func TestAResumedResponseIsQueued(t *testing.T) {
	t.Parallel()
	client, err := eventlog.Marshal(kept{Protocol: protocolName, Background: true})
	require.NoError(t, err)
	f, r := newFolder("s", "run-1", nil), eventlog.Record{}
	r.Agent = "s"
	f.takeFact(r, &fact.RunRequested{RunID: "run-1", RunOptions: fact.RunOptions{Client: client}})
	f.chunk(r, &eventlog.RunResumed{})
	require.Equal(t, statusQueued, f.state.status)
	f.takeFact(r, &fact.RunClaimed{})
	require.Equal(t, statusInProgress, f.state.status)
	next := f.next
	f.chunk(r, &eventlog.StepStart{})
	require.Equal(t, next, f.next, "it is in progress once")
}
