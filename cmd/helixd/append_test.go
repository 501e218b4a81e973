package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/projector"
)

// newDaemon serves a log and returns a way to run commands against it.
func newDaemon(t *testing.T, agents ...agentloop.Agent) (log eventlog.Log, helixd func(stdin string, args ...string) (string, error)) {
	t.Helper()
	log = memory.New()
	loop, err := engine.New(log, agents, nil)
	require.NoError(t, err)
	t.Cleanup(loop.Stop)
	api, err := httpapi.New(httpapi.Options{
		Log: log, Loop: loop, Auth: httpapi.BearerTokens([]httpapi.Token{{Token: "t", Operations: []string{"*"}, Sessions: []string{"*"}}}),
	})
	require.NoError(t, err)
	srv := httptest.NewServer(api)
	t.Cleanup(srv.Close)
	return log, func(stdin string, args ...string) (string, error) {
		var c cli
		parser, err := kong.New(&c)
		require.NoError(t, err)
		k, err := parser.Parse(append(args, "--server", srv.URL+"/", "--token", "t"))
		if err != nil {
			return "", err
		}
		var out bytes.Buffer
		err = k.Run(&flags.Process{Ctx: t.Context(), Stdin: strings.NewReader(stdin), Stdout: &out})
		return out.String(), err
	}
}

func folded(t *testing.T, log eventlog.Log, session string) *projector.Tree {
	t.Helper()
	s := new(projector.Tree)
	for r, err := range log.Read(t.Context(), session, 0, 0) {
		require.NoError(t, err)
		projector.Apply(s, r)
	}
	return s
}

func chunkLines(session string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"type":"text_delta","delta":"%d","agentId":%q,"agentType":"a","timestamp":1,"step":0}`+"\n\n", i, session)
	}
	return b.String()
}

func TestAppend(t *testing.T) {
	log, helixd := newDaemon(t)
	const session = "a b/../é."
	args := []string{"append", session, "--idempotency-key", "k", "--expected-sequence", "0", "--end"}
	for range 2 { // repeating it changes nothing
		out, err := helixd(chunkLines(session, 2500), args...)
		require.NoError(t, err)
		require.JSONEq(t, `{"firstSequence":1,"lastSequence":2500,"count":2500}`, out)
	}
	s := folded(t, log, session)
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
	log, helixd := newDaemon(t)
	file := filepath.Join(t.TempDir(), "chunks")
	require.NoError(t, os.WriteFile(file, []byte(chunkLines("s", 3)), 0o600))
	out, err := helixd("", "append", "s", file, "--fail", `it "broke"`)
	require.NoError(t, err)
	require.JSONEq(t, `{"firstSequence":1,"lastSequence":3,"count":3}`, out)
	s := folded(t, log, "s")
	require.Equal(t, `it "broke"`, s.Error.Message)

	out, err = helixd("", "append", "t")
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
	_, helixd := newDaemon(t)
	_, err := helixd(chunkLines("s", 1000)+"junk", "append", "s")
	require.ErrorContains(t, err, "behind sequence 1000, where 1000 chunks were appended")
	require.ErrorContains(t, err, "INVALID_REQUEST")
	_, err = helixd(chunkLines("s", 1), "append", "s", "--expected-sequence", "999")
	require.ErrorContains(t, err, "SEQUENCE_CONFLICT")
	out, err := helixd(chunkLines("s", 2), "append", "s", "--expected-sequence", "1000")
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
