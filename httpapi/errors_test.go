package httpapi_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi/api"
)

// silentLog is a log that does not answer in time.
type silentLog struct{ eventlog.Log }

var errSilent = fmt.Errorf("jetstream: get: %w", context.DeadlineExceeded)

func (silentLog) Head(context.Context, string) (uint64, error) { return 0, errSilent }

func (silentLog) Read(context.Context, string, uint64, uint64) iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) { yield(eventlog.Record{}, errSilent) }
}

// TestALogThatDoesNotAnswer is no failure of the server's own: ask again.
func TestALogThatDoesNotAnswer(t *testing.T) {
	a := newAPIOn(t, silentLog{memory.New()}, agents(gatedModel{}))
	for _, target := range []string{"/sessions/s", "/sessions/s/records", "/sessions/s/state", "/sse?sessionId=s", "/chat/s/messages"} {
		a.get(target).failed(t, 503, api.CodeUnavailable)
	}
	a.post(chunksOf("s"), line("s", "x")).failed(t, 503, api.CodeUnavailable)
	got := a.post("/start", `{"agentType":"echo","sessionId":"s","message":"hi"}`).failed(t, 503, api.CodeUnavailable)
	require.Contains(t, got.Error, "may have been carried out")
}

// TestErrorTextsAreBounded: clients choose the names that errors tell.
func TestErrorTextsAreBounded(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, memory.New(), nil)
	name := "x" + strings.Repeat("é", 1<<18)
	got := a.post("/start", fmt.Sprintf(`{%[1]q:1,%[1]q:2}`, name)).failed(t, 400, api.CodeInvalidRequest)
	require.LessOrEqual(t, len(got.Error), 8<<10)
	require.True(t, utf8.ValidString(got.Error))
	require.NotContains(t, got.Error, string(utf8.RuneError))
	require.Equal(t, map[string]any{"field": "x" + strings.Repeat("é", 127)}, got.Detail)
}
