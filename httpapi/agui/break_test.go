package agui

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/snapshot"
)

// A server that closes adds an error to the stream of a run that continues, and nothing to one
// whose end the client has, or is about to receive: no event comes after a run's last one.
func TestNothingFollowsTheEndOfARun(t *testing.T) {
	log := memory.New()
	base := fact.Base{SessionID: "s", Timestamp: 1}
	var entries []eventlog.Entry
	for _, f := range []fact.Fact{
		&fact.SessionCreated{AgentType: "brain", State: []byte("{}"), Base: base}, &fact.UserMessage{Content: "hello", Base: base},
		&fact.RunRequested{RunID: "run-1", Mode: fact.ModeStart, Base: base}, &fact.RunEnded{RunID: "run-1", Status: fact.RunCompleted, Base: base},
	} {
		e, err := eventlog.NewFact("s", f, eventlog.Labels{Run: "run-1"})
		require.NoError(t, err)
		entries = append(entries, e)
	}
	_, err := log.Append(t.Context(), "s", 0, entries)
	require.NoError(t, err)
	states := snapshot.New(log, nil)
	s := &Routes{log: log, states: states}
	now, err := states.Head(t.Context(), "s")
	require.NoError(t, err)
	for name, fresh := range map[string]*projector.Tree{"all": nil, "fresh": now} {
		p := s.reading("s", now.CurrentRun(), nil)
		p.fresh = fresh
		last := ""
		for e, err := range p.events(t.Context(), log.Read(t.Context(), "s", 0, 0)) {
			require.NoError(t, err, name)
			require.Contains(t, string(p.cut().Data), codeBroken, "%s: the run continues", name)
			last = string(e.Data)
		}
		require.Contains(t, last, typeRunFinished, name)
		require.Nil(t, p.cut().Data, name)
	}
}
