package eventlog_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
)

// freeze makes the wire files that are missing. No flag overwrites one: they
// are the bytes that are in logs.
var freeze = flag.Bool("freeze", false, "create missing files in testdata/wire")

func TestFrozenChunks(t *testing.T) {
	frozen(t, "chunk", chunkSamples, eventlog.EncodeChunk, eventlog.DecodeChunk)
}

func TestFrozenFacts(t *testing.T) {
	frozen(t, "fact", factSamples, eventlog.EncodeFact, eventlog.DecodeFact)
}

func frozen[T interface{ Type() string }](
	t *testing.T, folder string, samples []sample[T], encode func(T) ([]byte, error), decode func([]byte) (T, error),
) {
	for _, s := range samples {
		path := filepath.Join("testdata", "wire", folder, s.full.Type()+".json")
		today, err := encode(s.full)
		require.NoError(t, err)
		if *freeze {
			create(t, path, today)
		}
		wire, err := os.ReadFile(path)
		require.NoError(t, err, "a new type is frozen with: go test ./eventlog -run Frozen -freeze")
		got, err := decode(wire)
		require.NoError(t, err)
		require.Equal(t, s.full, got, "%s is read differently today", path)
		require.Equal(t, string(wire), string(today), "%s is written differently today", path)
	}
	files, err := filepath.Glob(filepath.Join("testdata", "wire", folder, "*"))
	require.NoError(t, err)
	require.Len(t, files, len(samples), "a type has gone that logs still hold")
}

func create(t *testing.T, path string, data []byte) {
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if os.IsExist(err) {
		return
	}
	require.NoError(t, err)
	_, err = f.Write(data)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}
