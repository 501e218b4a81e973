package logtest

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
)

// recreation: knowledge about an erased session is useless in a new one of its id, though
// that has no claim yet.
func recreation(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	w := claim(t, log, "s", "w")
	streams := eventlog.NewStreams(log)
	chunks, err := streams.CreateWriter("s", "s", "writer")
	require.NoError(t, err)
	hello := &eventlog.TextDelta{Delta: "old", Base: eventlog.Base{AgentID: "s", AgentType: "writer", Timestamp: 1, Step: 1}}
	old, err := chunks.Write(ctx, hello)
	require.NoError(t, err)
	require.NoError(t, w.Append(ctx, Text("s", "old too")))
	_, err = log.Erase(ctx, "s")
	require.NoError(t, err)
	append1(t, log, "s", 0, "new", "life")

	require.ErrorIs(t, w.Append(ctx, Text("s", "of the old")), eventlog.ErrSessionNotFound)
	require.ErrorIs(t, w.Append(ctx, Text("s", "of the old")), eventlog.ErrSessionNotFound, "it has ended")
	_, err = chunks.Write(ctx, hello)
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	require.Equal(t, []string{"new", "life"}, texts(t, collect(t, log.Read(ctx, "s", 0, 0))))
	_, err = eventlog.Rollback(ctx, log, "s", old, eventlog.RollbackOptions{Restore: json.RawMessage("{}")})
	var invalid *eventlog.ValidationError
	require.ErrorAs(t, err, &invalid)

	_, err = log.Erase(eventlog.WithHead(ctx, "s", old), "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound, "it is erased, and another session has its id")
	require.Equal(t, []string{"new", "life"}, texts(t, collect(t, log.Read(ctx, "s", 0, 0))))

	again := &crowded{Log: log, quicker: []func(){func() {
		head, err := log.Head(ctx, "s")
		require.NoError(t, err)
		_, err = log.Erase(eventlog.WithHead(ctx, "s", head), "s")
		require.NoError(t, err)
		append1(t, log, "s", 0, "newer")
	}}}
	_, err = eventlog.CleanupToStep(ctx, again, "s", "s", 0, 0)
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound, "the plan was for what is gone")
	require.Equal(t, []string{"newer"}, texts(t, collect(t, log.Read(ctx, "s", 0, 0))))
}

// aheadOfHead: no part of a refused append can be under way, so it is reported at once.
func aheadOfHead(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	head := append1(t, log, "s", 0, "a")
	_, err := eventlog.AppendOnce(ctx, log, "s", "p", head+5, []eventlog.Entry{Text("s", "b")})
	var conflict *eventlog.ConflictError
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, head, conflict.Head)
	require.Equal(t, []string{"a"}, texts(t, collect(t, log.Read(ctx, "s", 0, 0))))
}

// missedErasure: a follower that did not learn of its session's erasure does not continue
// in the next one of its id, neither the one that follows nor the one that comes back
// with its cursor.
func missedErasure(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	head := append1(t, log, "s", 0, "old", "life")
	var got []string
	var last error
	for r, err := range log.Follow(ctx, "s", 0) {
		if last = err; err != nil {
			break
		}
		if got = append(got, texts(t, []eventlog.Record{r})...); r.Sequence != head {
			continue
		}
		// It is busy with this record, and hears nothing.
		_, err := log.Erase(ctx, "s")
		require.NoError(t, err)
		append1(t, log, "s", 0, "new")
	}
	require.ErrorIs(t, last, eventlog.ErrSessionNotFound)
	require.Equal(t, []string{"old", "life"}, got)
	_, last = collectErr(log.Follow(ctx, "s", head))
	require.ErrorIs(t, last, eventlog.ErrSessionNotFound)
}
