package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// Connect returns a connection to a new server, which ends with the test.
func Connect(t testing.TB) *nats.Conn {
	t.Helper()
	_, nc := embedtest.Start(t, embed.Options{SyncInterval: time.Second})
	return nc
}

// TextEntry is the i-th of some chunks of text.
func TextEntry(i int) eventlog.Entry {
	return eventlog.Entry{
		Envelope: eventlog.Envelope{Kind: eventlog.KindChunk, Type: "text_delta", Agent: "s", Writer: "w", Ordinal: uint64(i + 1)},
		Payload:  []byte(fmt.Sprintf(`{"delta":"%d"}`, i)),
	}
}

// TextEntries are n chunks with a text.
func TextEntries(text string, n int) (entries []eventlog.Entry) {
	for i := range n {
		e := TextEntry(i)
		e.Payload = fmt.Appendf(nil, `{"delta":"%s %d"}`, text, i)
		entries = append(entries, e)
	}
	return entries
}

// RunEnded is the last record of a run.
var RunEnded = eventlog.Entry{
	Envelope: eventlog.Envelope{Kind: eventlog.KindFact, Type: (*fact.RunEnded)(nil).Type(), Agent: "s"}, Payload: []byte(`{}`),
}

// PurgeNow purges all sealed records.
var PurgeNow = eventlog.PurgeOptions{SealedFor: time.Nanosecond}

// Appended appends to a session and returns its last record's sequence.
func Appended(t testing.TB, l interface {
	Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error)
}, session string, expected uint64, entries []eventlog.Entry) (last uint64) {
	t.Helper()
	last, err := l.Append(t.Context(), session, expected, entries)
	require.NoError(t, err)
	return last
}

// RequireRecords requires that a session has exactly those entries.
func RequireRecords(t testing.TB, l interface {
	Read(ctx context.Context, session string, from, to uint64) iter.Seq2[eventlog.Record, error]
}, session string, want []eventlog.Entry) {
	t.Helper()
	var got []eventlog.Entry
	for r, err := range l.Read(t.Context(), session, 0, 0) {
		require.NoError(t, err)
		got = append(got, r.Entry)
	}
	require.Equal(t, want, got)
}

// PublishForeign stores a message that helixd did not write.
func PublishForeign(t testing.TB, nc *nats.Conn, subject string, h nats.Header, data []byte) {
	t.Helper()
	answer, err := nc.RequestMsg(&nats.Msg{Subject: subject, Header: h, Data: data}, time.Minute)
	require.NoError(t, err)
	var ack struct{ Error json.RawMessage }
	require.NoError(t, json.Unmarshal(answer.Data, &ack))
	require.Empty(t, ack.Error)
}
