package remotehttp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/remote"
)

// FuzzDecodeEvent: whatever a server says is an event, none, or an error.
func FuzzDecodeEvent(f *testing.F) {
	for _, name := range []string{"chunk", "end", "error", "", "later"} {
		f.Add(name, "7", []byte(`{"type":"chunk","chunk":{"type":"text_delta","delta":"x"},"sequence":7}`))
		f.Add(name, "", []byte(`{"type":"end","output":null,"error":"x"}`))
	}
	f.Fuzz(func(t *testing.T, name, id string, data []byte) {
		e, err := decodeEvent(RawEvent{ID: id, Name: name, Data: data}, nil)
		if err != nil {
			require.Nil(t, e)
			return
		}
		if c, ok := e.(remote.ChunkEvent); ok {
			require.NotZero(t, c.Sequence)
			require.NotNil(t, c.Chunk)
			require.NotEmpty(t, c.Raw)
		}
	})
}
