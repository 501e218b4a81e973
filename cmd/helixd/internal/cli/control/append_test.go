package control

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/internal/clitest"
	"github.com/helixd/helixd/projector"
)

func TestAppend(t *testing.T) {
	log, helixd := clitest.Serve[Commands](t)
	const session = "a b/../é."
	args := []string{"append", session, "--idempotency-key", "k", "--expected-sequence", "0", "--end", "--json"}
	for range 2 { // repeating it changes nothing
		out, err := helixd(clitest.ChunkLines(session, 2500), args...)
		require.NoError(t, err)
		require.JSONEq(t, `{"firstSequence":1,"lastSequence":2500,"count":2500}`, out)
	}
	s := clitest.Folded(t, log, session)
	require.EqualValues(t, 2501, s.Head)
	require.Equal(t, projector.SessionCompleted, s.Status)
	keys, err := json.Marshal(s.Appends)
	require.NoError(t, err)
	for _, want := range []string{`"k-1":`, `"k-2":`, `"k-3":`, `"k-end":`} {
		require.Contains(t, string(keys), want)
	}
	third, known := s.Appends.Get("k-3")
	require.True(t, known)
	require.Equal(t, 500, third.Count)
}

func TestAppendFileAndFail(t *testing.T) {
	log, helixd := clitest.Serve[Commands](t)
	file := filepath.Join(t.TempDir(), "chunks")
	require.NoError(t, os.WriteFile(file, []byte(clitest.ChunkLines("s", 3)), 0o600))
	out, err := helixd("", "append", "s", file, "--fail", `it "broke"`)
	require.NoError(t, err)
	require.Equal(t, "3 chunks: sequences 1 to 3\n", out)
	s := clitest.Folded(t, log, "s")
	require.Equal(t, `it "broke"`, s.Error.Message)

	out, err = helixd("", "append", "t")
	require.NoError(t, err)
	require.Equal(t, "nothing was appended\n", out)
	out, err = helixd("", "append", "t", "--json")
	require.NoError(t, err)
	require.JSONEq(t, `{"firstSequence":0,"lastSequence":0,"count":0}`, out)
	_, err = helixd("", "append", "t", "--end")
	require.ErrorContains(t, err, "NOT_FOUND")
	_, err = helixd("", "append", "t", "--end", "--fail", "x")
	require.Error(t, err, "one of them")
	_, err = helixd("", "append", "t", file+"x")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestAppendSaysHowFarItCame(t *testing.T) {
	_, helixd := clitest.Serve[Commands](t)
	_, err := helixd(clitest.ChunkLines("s", 1000)+"junk", "append", "s")
	require.ErrorContains(t, err, "after sequence 1000, with 1000 chunks appended")
	require.ErrorContains(t, err, "INVALID_REQUEST")
	_, err = helixd(clitest.ChunkLines("s", 1), "append", "s", "--expected-sequence", "999")
	require.ErrorContains(t, err, "SEQUENCE_CONFLICT")
	out, err := helixd(clitest.ChunkLines("s", 2), "append", "s", "--expected-sequence", "1000", "--json")
	require.NoError(t, err)
	require.JSONEq(t, `{"firstSequence":1001,"lastSequence":1002,"count":2}`, out)
}

func TestBatches(t *testing.T) {
	for _, tc := range []struct {
		in                 string
		maxLines, maxBytes int
		want               []string
	}{
		{"", 2, 9, nil},
		{"\n \r\n", 2, 9, nil},
		{"a\nb\r\n\nc", 2, 9, []string{"a\nb\n", "c\n"}},
		{"a\nb\nc\nd\n", 2, 9, []string{"a\nb\n", "c\nd\n"}},
		{"aaa\nbbb\nc\n", 9, 8, []string{"aaa\nbbb\n", "c\n"}},
		{"a\nmuch too long\nb\n", 9, 8, []string{"a\n", "much too long\n", "b\n"}},
	} {
		var got []string
		for b, err := range batches(strings.NewReader(tc.in), tc.maxLines, tc.maxBytes) {
			require.NoError(t, err)
			got = append(got, string(b))
		}
		require.Equal(t, tc.want, got, "%q", tc.in)
	}
}
