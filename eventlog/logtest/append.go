package logtest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
)

func appendCAS(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	first := append1(t, log, "s", 0, "a")
	_, err := log.Append(ctx, "s", 0, []eventlog.Entry{Text("s", "again")})
	var conflict *eventlog.ConflictError
	require.ErrorAs(t, err, &conflict, "a session is created once")
	_, err = put(ctx, log, "s", first+1, []eventlog.Entry{Text("s", "ahead")})
	require.ErrorAs(t, err, &conflict)
	_, err = put(ctx, log, "other", first, []eventlog.Entry{Text("other", "not new")})
	require.ErrorAs(t, err, &conflict, "another session's sequence is not this one's")

	second := append1(t, log, "s", first, "b")
	require.Greater(t, second, first)
	_, err = log.Append(ctx, "s", first, []eventlog.Entry{Text("s", "late duplicate")})
	require.ErrorAs(t, err, &conflict)

	head, err := log.Head(ctx, "s")
	require.NoError(t, err)
	require.Equal(t, second, head)
	require.Equal(t, []string{"a", "b"}, texts(t, collect(t, log.Read(ctx, "s", 0, 0))))
}

func appendBatch(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	last := append1(t, log, "s", 0, numbered(0, 20)...)
	records := collect(t, log.Read(ctx, "s", 0, 0))
	require.Len(t, records, 20)
	for i, r := range records {
		require.Equal(t, last-19+uint64(i), r.Sequence)
	}

	_, err := log.Append(ctx, "s", last-1, []eventlog.Entry{Text("s", "x"), Text("s", "y"), Text("s", "z")})
	var conflict *eventlog.ConflictError
	require.ErrorAs(t, err, &conflict)
	huge := Text("s", "huge")
	huge.Payload = make([]byte, log.Info().MaxRecordBytes+1)
	_, err = log.Append(ctx, "s", last, []eventlog.Entry{Text("s", "x"), huge})
	require.ErrorIs(t, err, eventlog.ErrTooLarge)
	require.Len(t, collect(t, log.Read(ctx, "s", 0, 0)), 20, "a refused batch leaves nothing")

	append1(t, log, "other", 0, "o")
	next := append1(t, log, "s", last, "x", "y")
	require.Greater(t, next, last+2, "sequences of a session have gaps where others wrote")
}

func roundTrip(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	e := eventlog.Entry{
		Envelope: eventlog.Envelope{
			Kind: eventlog.KindChunk, Type: "text_delta", Agent: " é\u2028*>%41.", Run: "r/1 ", Call: "call 0:\"x\"",
			Writer: "w", Ordinal: 1<<64 - 1,
		},
		Payload: []byte("{\"type\":\"text_delta\",\"delta\":\"<&\u2028\"}  \n"),
	}
	alien := eventlog.Entry{
		Envelope: eventlog.Envelope{Kind: "custom", Type: "no such type"},
		Payload:  []byte{0xff, 0, '\r', '\n'},
	}
	last, err := put(ctx, log, "s", 0, []eventlog.Entry{e, alien})
	require.NoError(t, err)
	records := collect(t, log.Read(ctx, "s", 0, 0))
	require.Equal(t, e, records[0].Entry)
	require.Equal(t, alien, records[1].Entry)
	require.Equal(t, last, records[1].Sequence)
	require.False(t, records[0].Time.IsZero())
}

func oddIDs(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	ids := []string{
		"*", ">", "a", "a.b", "a/b", "a b", " a", "é", "e\u0301", "%2A", "helix.log.0.a", "a.*", "$JS", "..", "\u2028",
		"a%2Eb", "a%20b", strings.Repeat("x", eventlog.MaxSessionID), strings.Repeat(".", eventlog.MaxSessionID),
	}
	for _, id := range ids {
		append1(t, log, id, 0, id)
	}
	for _, id := range ids {
		require.Equal(t, []string{id}, texts(t, collect(t, log.Read(ctx, id, 0, 0))), "session %q", id)
	}
}

func badIDs(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	for _, id := range []string{"", "a\x00b", "\n", "\x7f", "\u0085", "\xff", "\ufffd", strings.Repeat("x", eventlog.MaxSessionID) + "x"} {
		var invalid *eventlog.ValidationError
		_, err := log.Append(ctx, id, 0, []eventlog.Entry{Text("s", "x")})
		require.ErrorAs(t, err, &invalid, "%q", id)
		require.Equal(t, "sessionId", invalid.Field)
	}
	for id, err := range log.Sessions(ctx) {
		require.Fail(t, "nothing must have been written", "%q %v", id, err)
	}
}

func listing(t *testing.T, log eventlog.Log) {
	for _, id := range []string{"b", "a/1", "c"} {
		append1(t, log, id, 0, "x", "y")
	}
	var ids []string
	for id, err := range log.Sessions(ctxOf(t)) {
		require.NoError(t, err)
		ids = append(ids, id)
	}
	require.Equal(t, []string{"a/1", "b", "c"}, ids)
}
