package logtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

func streamStates(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	end := Fact("s", &fact.StreamEnd{StreamID: "s", Timestamp: 1})
	fail := Fact("s", &fact.StreamFailed{Error: "broke", Base: base("s")})
	pause := Fact("s", &fact.StreamPaused{Base: base("s")})
	request := Fact("s", &fact.RunRequested{RunID: "run-2", Mode: fact.ModeStart, Base: base("s")})

	w := claim(t, log, "s", "w")
	f := startFollowing(t, log, "s", 0)
	f.next(t, 1)
	require.NoError(t, w.Append(ctx, pause))
	require.NoError(t, w.Append(ctx, Text("s", "paused streams take chunks")))
	f.next(t, 2) // a pause does not end a reader
	require.NoError(t, w.Append(ctx, Text("s", "last"), end))
	f.next(t, 2)
	for _, e := range []eventlog.Entry{Text("s", "late"), end, fail, pause} {
		require.ErrorIs(t, w.Append(ctx, e), eventlog.ErrStreamEnded, "%s after the end", e.Type)
	}
	require.ErrorIs(t, w.Append(ctx, Text("s", "late"), request), eventlog.ErrStreamEnded)
	outlived, err := eventlog.NewChunk(&eventlog.SubAgentEnd{
		SubAgentType: "a", SubSessionID: "s-agent-a", CallID: "c", Base: eventlog.Base{AgentID: "s", AgentType: "b"},
	}, eventlog.Labels{Run: "run-1"})
	require.NoError(t, err)
	require.NoError(t, w.Append(ctx, outlived), "a sub-agent that has outlived the end")

	require.NoError(t, w.Append(ctx, request, Text("s", "a new turn")), "re-activation")
	require.NoError(t, w.Append(ctx, fail))
	require.ErrorIs(t, w.Append(ctx, Text("s", "late")), eventlog.ErrStreamEnded)
	again := claim(t, log, "s", "again")
	require.ErrorIs(t, again.Append(ctx, Text("s", "late")), eventlog.ErrStreamEnded, "the end binds a new writer too")
	require.NoError(t, again.Append(ctx, request))
	require.NoError(t, again.Append(ctx, Text("s", "third")))

	head, err := log.Head(ctx, "s")
	require.NoError(t, err)
	_, err = log.Append(ctx, "s", head, []eventlog.Entry{end}) // by another writer
	require.NoError(t, err)
	require.ErrorIs(t, again.Append(ctx, Text("s", "late")), eventlog.ErrStreamEnded, "whoever has ended it")

	records := collect(t, log.Read(ctx, "s", 0, 0))
	require.Equal(t, []string{"paused streams take chunks", "last", "a new turn", "third"}, texts(t, records))
	f.cancel(nil)
	<-f.err
}

func truncation(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	w := claim(t, log, "s", "w")
	call := Text("s", "of a call")
	call.Call = "call-1"
	require.NoError(t, w.Append(ctx, Text("s", "a"), Text("s", "b"), call, Text("s", "c"), Text("s", "d")))
	seen := *w.seen
	b, c := seen[2].Sequence, seen[4].Sequence
	marker := func(r eventlog.Range) eventlog.Entry {
		return Fact("s", &eventlog.Truncated{
			Reason: eventlog.ResyncCrashRecovery, Ranges: []eventlog.Range{r}, AtSequence: c, Base: base("s"),
		})
	}
	require.NoError(t, w.Append(ctx, marker(eventlog.Range{AgentID: "s", From: b, To: c})))
	effective := func(from, to uint64) []string {
		return texts(t, collect(t, eventlog.Effective(ctx, log, "s", from, to)))
	}
	require.Equal(t, []string{"a", "of a call", "d"}, effective(0, 0))
	require.Equal(t, []string{"of a call", "d"}, effective(b, 0))
	require.Equal(t, []string{"a", "b", "of a call", "c"}, effective(0, c), "what was true at c")

	require.NoError(t, w.Append(ctx, marker(eventlog.Range{AgentID: "s", CallID: "call-1", From: 1, To: c})))
	require.NoError(t, w.Append(ctx, marker(eventlog.Range{AgentID: "other", From: 1, To: c})))
	require.Equal(t, []string{"a", "d"}, effective(0, 0))
	head, err := log.Head(ctx, "s")
	require.NoError(t, err)
	require.Empty(t, effective(head, 0))
	require.Equal(t, []string{"a", "b", "of a call", "c", "d"}, texts(t, collect(t, log.Read(ctx, "s", 0, 0))),
		"a raw read shows everything")
}
