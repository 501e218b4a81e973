package eventlog_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

func TestSamplesCoverEveryType(t *testing.T) {
	require.Equal(t, eventlog.ChunkTypes(), typesOf(chunkSamples))
	require.Equal(t, eventlog.FactTypes(), typesOf(factSamples))
}

func typesOf[T interface{ Type() string }](samples []sample[T]) []string {
	var types []string
	for _, s := range samples {
		types = append(types, s.full.Type())
	}
	slices.Sort(types)
	return types
}

func TestChunkRoundTrip(t *testing.T) {
	for _, s := range chunkSamples {
		require.Equal(t, s.full.Type(), s.minimal.Type())
		for _, c := range []eventlog.Chunk{s.full, s.minimal} {
			wire, err := eventlog.EncodeChunk(c)
			require.NoError(t, err, "%#v", c)
			for name, decode := range map[string]func([]byte) (eventlog.Chunk, error){
				"DecodeChunk": eventlog.DecodeChunk, "ParseChunk": eventlog.ParseChunk,
			} {
				got, err := decode(wire)
				require.NoError(t, err, "%s %s", name, wire)
				require.Equal(t, c, got, name)
				again, err := eventlog.EncodeChunk(got)
				require.NoError(t, err)
				require.Equal(t, string(wire), string(again), name)
			}
			require.Equal(t, base, eventlog.BaseOf(c))
		}
	}
}

func TestFactRoundTrip(t *testing.T) {
	for _, s := range factSamples {
		require.Equal(t, s.full.Type(), s.minimal.Type())
		require.EqualValues(t, 1700000000123, s.full.At())
		for _, f := range []fact.Fact{s.full, s.minimal} {
			wire, err := eventlog.EncodeFact(f)
			require.NoError(t, err, "%#v", f)
			got, err := eventlog.DecodeFact(wire)
			require.NoError(t, err, "%s", wire)
			require.Equal(t, f, got)
			again, err := eventlog.EncodeFact(got)
			require.NoError(t, err)
			require.Equal(t, string(wire), string(again))
		}
	}
}
