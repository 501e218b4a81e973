package projector_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
)

// TestAStreamThatIsReset: a session that outside producers wrote and ended is
// active again.
func TestAStreamThatIsReset(t *testing.T) {
	log := memory.New()
	streams := eventlog.NewStreams(log)
	w, err := streams.CreateWriter("s", "s", "a")
	require.NoError(t, err)
	_, err = w.Write(t.Context(), &eventlog.TextDelta{Delta: "x", Base: eventlog.Base{AgentID: "s", AgentType: "a"}})
	require.NoError(t, err)
	require.NoError(t, streams.EndStream(t.Context(), "s", []byte(`1`)))
	fold := func() *projector.Tree {
		return projector.Fold(logtest.Records(t, log, "s")...)
	}
	require.Equal(t, projector.SessionCompleted, fold().Status)
	_, err = streams.ResetStream(t.Context(), "s")
	require.NoError(t, err)
	after := fold()
	require.Equal(t, projector.SessionActive, after.Status)
	require.Equal(t, eventlog.StreamActive, after.StreamStatus)
	require.Nil(t, after.Output)
}
