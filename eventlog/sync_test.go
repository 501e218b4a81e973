package eventlog_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/logtest"
)

func TestSyncObservesWhatOthersHaveWritten(t *testing.T) {
	var seen []eventlog.Record
	d := newDesk(t, eventlog.WriterOptions{Observe: func(r eventlog.Record) { seen = append(seen, r) }})
	head, err := d.log.Head(t.Context(), "s")
	require.NoError(t, err)
	_, err = eventlog.AppendOnce(t.Context(), d.log, "s", "somebody", head, []eventlog.Entry{logtest.Text("s", "theirs;")})
	require.NoError(t, err)
	require.Len(t, seen, 1, "only the claim")

	require.NoError(t, d.Sync(t.Context()))
	require.Len(t, seen, 2)
	require.Equal(t, "somebody", seen[1].Writer)
	require.NoError(t, d.Append(t.Context(), logtest.Text("s", "ours;")))
	require.Equal(t, "theirs;ours;", d.text())

	require.NoError(t, d.Sync(t.Context()), "there is nothing new")
	require.Len(t, seen, 3)
}

func TestSyncComesBehindWhatWasWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		d := newDesk(t, eventlog.WriterOptions{NoMerge: true, Observe: func(r eventlog.Record) { seen = append(seen, r.Type) }})
		d.stuck()
		require.NoError(t, d.Write(t.Context(), logtest.Text("s", "first;")))
		done := later(func() error { return d.Sync(t.Context()) })
		d.gate.Open()
		require.NoError(t, <-done)
		require.Equal(t, []string{"run_claimed", "text_delta", "text_delta"}, seen)
	})
}

func TestSyncTellsOfAnotherClaim(t *testing.T) {
	d := newDesk(t, eventlog.WriterOptions{})
	head, err := d.log.Head(t.Context(), "s")
	require.NoError(t, err)
	other := eventlog.NewWriter(d.log, "s", eventlog.WriterOptions{ID: "other", Head: head})
	t.Cleanup(other.Stop)
	require.NoError(t, other.Claim(t.Context(), &fact.RunClaimed{
		RunID: "run-1", Node: "m", Attempt: 2, Base: fact.Base{SessionID: "s", Timestamp: 1},
	}))
	require.ErrorIs(t, d.Sync(t.Context()), eventlog.ErrSuperseded)
	require.ErrorIs(t, d.Append(t.Context(), logtest.Text("s", "late;")), eventlog.ErrSuperseded)
}

func TestASyncThatIsGivenUpLeavesTheWriterAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, eventlog.WriterOptions{})
		d.stuck()
		ctx, cancel := context.WithCancel(t.Context())
		done := later(func() error { return d.Sync(ctx) })
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
		d.gate.Open()
		require.NoError(t, d.Append(t.Context(), logtest.Text("s", "ours;")))
	})
}

// A sub-agent may outlive the turn of its root: the root's stream has ended,
// and what the sub-agent writes is not refused.
func TestASubAgentWritesBehindTheEndOfItsRootsStream(t *testing.T) {
	d := newDesk(t, eventlog.WriterOptions{})
	end, err := eventlog.NewFact("s", &fact.StreamEnd{StreamID: "s", Timestamp: 1}, eventlog.Labels{})
	require.NoError(t, err)
	require.NoError(t, d.Append(t.Context(), end))
	require.ErrorIs(t, d.Append(t.Context(), logtest.Text("s", "late;")), eventlog.ErrStreamEnded)
	require.NoError(t, d.Append(t.Context(), logtest.Text("s-agent-helper", "goes on;")))

	run, err := eventlog.NewFact("s-agent-helper", &fact.RunRequested{
		RunID: "run-2", Mode: fact.ModeStart, Base: fact.Base{SessionID: "s-agent-helper"},
	}, eventlog.Labels{})
	require.NoError(t, err)
	require.NoError(t, d.Append(t.Context(), run))
	require.ErrorIs(t, d.Append(t.Context(), logtest.Text("s", "later;")), eventlog.ErrStreamEnded,
		"a sub-agent's run does not open its root's stream")
}
