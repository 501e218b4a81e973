package modeltest_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/helixd/helixd/agentloop/model/modeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func post(t *testing.T, s *modeltest.Server, body string) (*http.Response, string, error) {
	t.Helper()
	res, err := s.Client().Post(s.URL+"/v1/chat/completions", "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	return res, string(text), err
}

func TestFraming(t *testing.T) {
	s := modeltest.Serve(t,
		modeltest.Events(`{"a":1}`, `{"b":2}`),
		modeltest.Events(`{"type":"ping"}`),
		modeltest.Failure(429, `{"error":{}}`),
	)
	res, text, err := post(t, s, `{"messages":[{"role":"user"}]}`)
	require.NoError(t, err)
	require.Equal(t, "text/event-stream", res.Header.Get("Content-Type"))
	require.Equal(t, "data: {\"a\":1}\n\ndata: {\"b\":2}\n\ndata: [DONE]\n\n", text)

	one := `{"messages":[{"role":"user"},{"role":"assistant"}]}`
	for range 2 { // asking again gives the same answer
		_, text, err = post(t, s, one)
		require.NoError(t, err)
		require.Equal(t, "event: ping\ndata: {\"type\":\"ping\"}\n\n", text)
	}

	res, text, err = post(t, s, `{"messages":[{"role":"assistant"},{"role":"assistant"},{"role":"assistant"}]}`)
	require.NoError(t, err)
	require.Equal(t, 429, res.StatusCode)
	require.Equal(t, `{"error":{}}`, text)

	require.Len(t, s.Requests(), 4)
	require.Equal(t, "/v1/chat/completions", s.Requests()[1].Path)
	require.JSONEq(t, one, string(s.Requests()[1].Body))
}

func TestCut(t *testing.T) {
	s := modeltest.ServeFunc(t, func([]byte) modeltest.Stream {
		return modeltest.Stream{Events: []modeltest.Event{{Data: "1"}}, Cut: true}
	})
	_, text, err := post(t, s, `{}`)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, "data: 1\n\n", text)
}

func TestFixtures(t *testing.T) {
	chat := modeltest.Fixture(t, "openai-text")
	require.Len(t, chat.Events, 303)
	require.True(t, chat.Done)

	raw := modeltest.Fixture(t, "anthropic-fallback-tool-call")
	require.Len(t, raw.Events, 8)
	require.True(t, raw.Done)

	messages := modeltest.Fixture(t, "anthropic-text")
	require.Equal(t, "message_start", messages.Events[0].Type)
	require.False(t, messages.Done)
}

func TestAnswersInRequests(t *testing.T) {
	for body, want := range map[string]int{
		`{"messages":[{"role":"user"},{"role":"assistant"},{"role":"assistant"}]}`: 2,
		`{"input":[{"role":"user"}]}`: 0,
		`{"input":[{"role":"user"},{"type":"reasoning"},{"type":"function_call"},{"type":"function_call_output"}]}`: 1,
		`{"input":[{"type":"function_call"},{"type":"function_call_output"},{"role":"assistant"},{"role":"user"}]}`: 2,
		`{"input":"hello"}`: 0,
		`nothing`:           0,
	} {
		require.Equal(t, want, modeltest.AssistantMessages([]byte(body)), body)
	}
}

func TestSplit(t *testing.T) {
	streams := modeltest.Events(`{"type":"a","n":1}`, `{"type":"b"}`, `{"type":"a","n":2}`).Split("a")
	require.Equal(t, []modeltest.Stream{modeltest.Events(`{"type":"a","n":1}`, `{"type":"b"}`), modeltest.Events(`{"type":"a","n":2}`)}, streams)
	require.Len(t, modeltest.Fixture(t, "openai-reasoning-encrypted-content.1").Split("response.created"), 4)
}
