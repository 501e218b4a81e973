package eventlog_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

func TestRecordJSON(t *testing.T) {
	for _, s := range chunkSamples {
		e, err := eventlog.NewChunk(s.full, eventlog.Labels{Run: "run-1", Call: "call-1"})
		require.NoError(t, err)
		e.Writer, e.Ordinal = "w", 7
		want := eventlog.Record{Sequence: 1<<64 - 1, Time: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Entry: e}
		b, err := want.MarshalJSON()
		require.NoError(t, err)
		var got eventlog.Record
		require.NoError(t, json.Unmarshal(b, &got))
		want.Entry = e.Encoded()
		require.Equal(t, want, got)

		c, err := got.Chunk()
		require.NoError(t, err)
		require.Equal(t, s.full, c)
		_, err = got.Fact()
		require.Error(t, err)
	}
}

func TestRecordJSONForm(t *testing.T) {
	e, err := eventlog.NewFact("s", &fact.StreamEnd{StreamID: "<s>", Timestamp: 1}, eventlog.Labels{})
	require.NoError(t, err)
	r := eventlog.Record{Sequence: 3, Time: time.Unix(0, 0).UTC(), Entry: e}
	b, err := r.MarshalJSON()
	require.NoError(t, err)
	require.Equal(t, `{"sequence":3,"time":"1970-01-01T00:00:00Z","kind":"fact","type":"stream_end","agent":"s",`+
		`"data":{"type":"stream_end","streamId":"<s>","timestamp":1}}`, string(b))

	r.Payload = []byte("not JSON \xff")
	b, err = json.Marshal(r)
	require.NoError(t, err)
	require.Contains(t, string(b), `"data":"not JSON \ufffd"`)

	_, err = r.Chunk()
	require.ErrorContains(t, err, "a fact stream_end is no chunk")
	require.Error(t, new(eventlog.Record).UnmarshalJSON([]byte(`{"sequence":-1}`)))
}
