package projector_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// Deaths are counted since a record last advanced a run, those before a model's first
// text and those after it separately. A node that claims its tree again has not died.
func TestClaimsCountDeaths(t *testing.T) {
	base := fact.Base{SessionID: "s", Timestamp: 1}
	var seq uint64
	tree := new(projector.Tree)
	apply := func(writer string, f fact.Fact) {
		t.Helper()
		e, err := eventlog.NewFact("s", f, eventlog.Labels{Run: "r"})
		require.NoError(t, err)
		e.Writer = writer
		seq++
		projector.Apply(tree, eventlog.Record{Sequence: seq, Entry: e})
	}
	claim := func(writer, node string, silent, fruitless int) {
		t.Helper()
		apply(writer, &fact.RunClaimed{RunID: "r", Node: node, Attempt: 1, Base: base})
		require.Equal(t, silent, tree.Claim.Silent)
		require.Equal(t, fruitless, tree.Claim.Fruitless)
	}
	apply("", &fact.SessionCreated{AgentType: "a", Base: base})
	apply("", &fact.RunRequested{RunID: "r", Mode: fact.ModeStart, Base: base})
	claim("w1", "n1", 0, 0)
	claim("w2", "n1", 0, 0)
	claim("w3", "n2", 1, 0)
	e, err := eventlog.NewChunk(&eventlog.TextDelta{Delta: "a", Base: eventlog.Base{AgentID: "s", AgentType: "a", Timestamp: 1, Step: 1}}, eventlog.Labels{Run: "r"})
	require.NoError(t, err)
	e.Writer = "w3"
	seq++
	projector.Apply(tree, eventlog.Record{Sequence: seq, Entry: e})
	claim("w4", "n3", 0, 1)
	claim("w5", "n4", 1, 1)
	apply("", &fact.RunRequested{RunID: "r2", Mode: fact.ModeContinue, Base: base})
	require.Zero(t, tree.Claim.Silent+tree.Claim.Fruitless, "somebody asked for it")
	claim("w6", "n5", 0, 0)
}
