package eventlog_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
)

func seeds(f *testing.F) {
	for _, s := range chunkSamples {
		wire, err := eventlog.EncodeChunk(s.full)
		require.NoError(f, err)
		f.Add(wire)
	}
	f.Add([]byte(` {"type" : "newer", "agentId" : 1}`))
	f.Add([]byte(`{"type":"text_delta","delta":"a","Type":"newer"}`))
}

// What can be decoded can be encoded, unless the rules are stricter today.
func FuzzDecodeChunk(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, in []byte) {
		c, err := eventlog.DecodeChunk(in)
		spaced, serr := eventlog.DecodeChunk(append([]byte{' '}, in...)) // its type is found otherwise
		if err != nil {
			require.Error(t, serr)
			return
		}
		require.NoError(t, serr)
		require.Equal(t, c.Type(), spaced.Type())
		wire, err := eventlog.EncodeChunk(c)
		if u, ok := c.(*eventlog.Unknown); ok {
			require.NoError(t, err)
			require.Equal(t, in, wire, u.Kind)
		}
		if err != nil {
			return
		}
		again, err := eventlog.DecodeChunk(wire)
		require.NoError(t, err)
		twice, err := eventlog.EncodeChunk(again)
		require.NoError(t, err)
		require.Equal(t, string(wire), string(twice))
	})
}

// What is accepted from outside is written and read as the same value.
func FuzzParseChunk(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, in []byte) {
		c, err := eventlog.ParseChunk(in)
		if err != nil {
			return
		}
		wire, err := eventlog.EncodeChunk(c)
		require.NoError(t, err)
		for _, read := range []func([]byte) (eventlog.Chunk, error){eventlog.ParseChunk, eventlog.DecodeChunk} {
			got, err := read(wire)
			require.NoError(t, err)
			require.Equal(t, c, got)
		}
		require.False(t, bytes.ContainsAny(wire, "\n\t"), "one line")
	})
}

// A delta's encoder writes what encoding/json does, and its value is what is read.
func FuzzDelta(f *testing.F) {
	f.Add("a", "session-1", int64(1), 1)
	f.Add("<&>\u2028\u2029\x00\x1f\x7f\"\\/\b\f\n\r\t", "é", int64(1<<62), 0)
	f.Add("\xff\xed\xa0\x80\xe2\x82\xf0\x9f\x98\x80", "\ufffd", int64(-1), -1)
	f.Fuzz(func(t *testing.T, text, id string, at int64, step int) {
		base := eventlog.Base{AgentID: id, AgentType: id, Timestamp: at, Step: step}
		for _, c := range []eventlog.Chunk{
			&eventlog.TextDelta{Delta: text, Base: base},
			&eventlog.Thinking{Content: text, Base: base},
			&eventlog.Thinking{Content: text, IsComplete: true, Base: base},
			&eventlog.ToolArgStreamDelta{ToolCallID: id, Delta: text, Base: base},
		} {
			e, err := eventlog.NewChunk(c, eventlog.Labels{})
			if err != nil {
				continue
			}
			var want bytes.Buffer
			enc := json.NewEncoder(&want)
			enc.SetEscapeHTML(false)
			require.NoError(t, enc.Encode(c))
			require.Equal(t, `{"type":"`+c.Type()+`",`+want.String()[1:], string(e.Payload)+"\n")
			requireValue(t, e)
		}
	})
}
