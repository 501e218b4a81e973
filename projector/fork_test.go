package projector_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/uimessage"
)

// family is the log of a root with a sub-agent of each kind. The remote one's server has
// reported its own sub-agent.
func family(root string) []eventlog.Record {
	child := func(id string, c fact.SubSession) eventlog.Entry {
		return factOf(id, &fact.SessionCreated{AgentType: "kid", Child: &c, Base: factBase(id)})
	}
	run := func(id string) eventlog.Entry {
		return factOf(id, &fact.RunRequested{RunID: "r", Mode: fact.ModeStart, Base: factBase(id)})
	}
	call := projector.ChildID(root, projector.InfixCall, "c-1")
	named := projector.ChildID(call, projector.InfixAgent, "m-1")
	remote := projector.ChildID(root, projector.InfixRemote, "c-2")
	return numbered(
		factOf(root, &fact.SessionCreated{AgentType: "boss", Base: factBase(root)}), run(root),
		child(call, fact.SubSession{ParentSessionID: root, CallID: "c-1", Mode: fact.SubSessionEphemeral}), run(call),
		child(named, fact.SubSession{ParentSessionID: call, CallID: "c-3", Mode: fact.SubSessionPersistent, Name: "m-1"}), run(named),
		child(remote, fact.SubSession{ParentSessionID: root, CallID: "c-2", Mode: fact.SubSessionEphemeral, Remote: true}),
		chunk(&eventlog.TextDelta{Delta: "hm", Base: base(remote[:min(len(remote), 200)] + "-sub-x")}, ""),
		factOf(remote, &fact.RemoteProgress{ToolCallID: "c-2", RunID: "r", Sequence: 7, Base: factBase(remote)}),
	)
}

// The sessions of a fork have the ids that they would have got there, so that a call and
// a companion tool find them.
func TestAForksSubAgentsAreNamedAsItsOwn(t *testing.T) {
	long := func(c string) string { return strings.Repeat(c, eventlog.MaxSessionID) }
	for _, ids := range [][2]string{{"s", "f"}, {"s", long("f")}, {long("s"), "f"}, {long("é")[:eventlog.MaxSessionID], long("f")}} {
		root, id := ids[0], ids[1]
		then := projector.Fold(family(root)...)
		require.Empty(t, then.Parked)
		fork := forkOf(t, then, id)
		require.Len(t, fork.Children, len(then.Children))
		for key, s := range fork.Children {
			require.Equal(t, key, s.SessionID)
			require.NoError(t, eventlog.ValidateSessionID(key))
		}
		call := projector.ChildID(id, projector.InfixCall, "c-1")
		named := projector.ChildID(call, projector.InfixAgent, "m-1")
		remote := projector.ChildID(id, projector.InfixRemote, "c-2")
		require.Equal(t, id, fork.Get(call).Child.ParentSessionID)
		require.Equal(t, call, fork.Get(named).Child.ParentSessionID)
		require.True(t, fork.Get(remote).Child.Remote)
		if root == "s" {
			require.NotNil(t, fork.Get(projector.ChildID(remote, projector.InfixCall, "x")))
		}
	}
}

// Clients of a fork see the ids of its own sessions.
func TestAForksMessagesNameItsOwnSessions(t *testing.T) {
	const origin = "original"
	call := projector.ChildID(origin, projector.InfixCall, "c-1")
	records := family(origin)
	for _, c := range []eventlog.Chunk{
		&eventlog.SubAgentStart{SubAgentType: "kid", SubSessionID: call, CallID: "c-1", Base: base(origin)},
		&eventlog.SubAgentEnd{SubAgentType: "kid", SubSessionID: call, CallID: "c-1", Result: json.RawMessage(`1`), Base: base(origin)},
		&eventlog.RunInterrupted{RunID: "r", Base: base(origin)},
		&eventlog.CustomEvent{EventName: "e", Data: json.RawMessage(`{"a":"<b>"}`), Base: base(origin)},
	} {
		records = next(records, chunk(c, ""))
	}
	shown := encoded(t, uimessage.Render(forkOf(t, projector.Fold(records...), "f"), nil))
	require.NotContains(t, shown, origin)
	require.Equal(t, strings.ReplaceAll(encoded(t, uimessage.Render(projector.Fold(records...), nil)), origin, "f"), shown)
}

// The unfinished work of a fork's sub-agents continues with it. A remote agent gets a new
// session, into which nothing is copied.
func TestAForksSubAgentsAreInterruptedByTheirParent(t *testing.T) {
	then := projector.Fold(family("s")...)
	fork := forkOf(t, then, "f")
	require.Equal(t, projector.SessionInterrupted, fork.Status)
	require.Nil(t, fork.Turn.Stop)
	for _, id := range []string{"f-sub-c-1", "f-sub-c-1-agent-m-1"} {
		s := fork.Get(id)
		require.Equal(t, projector.SessionInterrupted, s.Status)
		require.Equal(t, &projector.Stop{Kind: fact.StopInterrupt, ByParent: true}, s.Turn.Stop)
	}
	require.EqualValues(t, 7, then.Get("s-remote-c-2").RemoteSequence)
	require.Zero(t, fork.Get("f-remote-c-2").RemoteSequence)
}

func forkOf(t *testing.T, then *projector.Tree, id string) *projector.Tree {
	t.Helper()
	state, err := projector.ForkState(then, id)
	require.NoError(t, err)
	fork := new(projector.Tree)
	require.NoError(t, json.Unmarshal(state, fork))
	return fork
}

// A rollback makes the records of a remote stream after its target arrive again.
func TestARollbackForgetsWhatARemoteStreamHasBrought(t *testing.T) {
	progress := func(n uint64) eventlog.Entry {
		id := "s-remote-c-2"
		return factOf(id, &fact.RemoteProgress{ToolCallID: "c-2", RunID: "r", Sequence: n, Base: factBase(id)})
	}
	records := family("s")
	at := projector.Fold(records...)
	records = next(records, progress(12))
	head := records[len(records)-1].Sequence
	records = next(records, rollbackTo(at, head))
	back := projector.Fold(records...)
	require.Empty(t, back.Parked)
	require.EqualValues(t, 7, back.Get("s-remote-c-2").RemoteSequence)
	require.EqualValues(t, 9, projector.Fold(next(records, progress(9))...).Get("s-remote-c-2").RemoteSequence)
}
