package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/modeltest"
	"github.com/helixd/helixd/agentloop/model/openai"
)

func TestStatuses(t *testing.T) {
	const plain = `{"error":{"message":"no luck","type":"some_type","code":null}}`
	for _, c := range []struct {
		status    int
		body      string
		code      string
		retryable bool
		message   string
	}{
		{429, plain, model.CodeRateLimited, true, "no luck"},
		{429, `{"error":{"message":"pay","type":"insufficient_quota","code":"insufficient_quota"}}`, model.CodeRateLimited, false, "pay"},
		{503, plain, model.CodeOverloaded, true, "no luck"},
		{529, plain, model.CodeOverloaded, true, "no luck"},
		{500, plain, model.CodeUnavailable, true, "no luck"},
		{502, "<html>http://proxy.internal/</html>", model.CodeUnavailable, true, "Bad Gateway"},
		{503, "", model.CodeOverloaded, true, "Service Unavailable"},
		{599, "{}", model.CodeUnavailable, true, "the provider reported an error"},
		{401, plain, model.CodeAuthFailed, false, "no luck"},
		{403, plain, model.CodeAuthFailed, false, "no luck"},
		{408, plain, model.CodeTimeout, true, "no luck"},
		{400, plain, model.CodeInvalidRequest, false, "no luck"},
		{404, `{"detail":"Not Found"}`, model.CodeInvalidRequest, false, "Not Found"},
		{422, `{"code":"x","error":"not this"}`, model.CodeInvalidRequest, false, "not this"},
		{400, `[{"error":{"code":400,"message":"listed","status":"INVALID_ARGUMENT"}}]`, model.CodeInvalidRequest, false, "listed"},
		{400, `{"error":{"message":"long","code":"context_length_exceeded"}}`, model.CodeContextLength, false, "long"},
		{400, `{"object":"error","message":"This model's maximum context length is 9 tokens","type":"BadRequestError","code":400}`, model.CodeContextLength, false, "This model's maximum context length is 9 tokens"},
		{400, `{"error":{"message":"bad","code":"content_filter"}}`, model.CodeContentFiltered, false, "bad"},
		{400, `{"error":{"message":"bad","code":"content_policy_violation"}}`, model.CodeContentFiltered, false, "bad"},
	} {
		s := modeltest.Serve(t, modeltest.Failure(c.status, c.body))
		e, got := askFor(t, s)
		require.Equal(t, model.Error{Code: c.code, Message: c.message, Retryable: c.retryable, StatusCode: c.status}, s.Words(t, e))
		require.Empty(t, got.Events)
		require.Len(t, s.Requests(), 1, "retries are the loop's")
	}
}

func TestErrorsInTheStream(t *testing.T) {
	for _, c := range []struct {
		event, code string
		retryable   bool
		message     string
	}{
		{`{"error":{"message":"busy","type":"overloaded_error"}}`, model.CodeOverloaded, true, "busy"},
		{`{"error":{"message":"broke","type":"server_error","code":null}}`, model.CodeUnavailable, true, "broke"},
		{`{"error":{"message":"slow down","code":429}}`, model.CodeRateLimited, true, "slow down"},
		{`{"error":{"message":"bad","type":"invalid_request_error"}}`, model.CodeInvalidRequest, false, "bad"},
		{`{"error":{"message":"long","code":"context_length_exceeded"}}`, model.CodeContextLength, false, "long"},
		{`{"error":{"message":"filtered","code":"content_filter"}}`, model.CodeContentFiltered, false, "filtered"},
		{`{"error":"just text"}`, model.CodeProvider, true, "just text"},
		{`{"object":"error","message":"vllm","type":"BadRequestError","code":400}`, model.CodeInvalidRequest, false, "vllm"},
		{`{"id":"c","error":{"code":"server_error","message":"gone"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`, model.CodeUnavailable, true, "gone"},
		{chunk(`{}`, `"error"`), model.CodeProvider, true, "the provider ended the answer with an error"},
		{`{"broken`, model.CodeProvider, true, "the stream holds an event that cannot be read"},
	} {
		stream := modeltest.Events(chunk(`{"content":"Hel"}`, "null"))
		stream.Events = append(stream.Events, modeltest.Event{Data: c.event})
		s := modeltest.Serve(t, stream)
		e, got := askFor(t, s)
		require.Equal(t, c.code, e.Code, c.event)
		require.Equal(t, c.retryable, e.Retryable, c.event)
		require.Equal(t, c.message, s.Words(t, e).Message)
		require.Zero(t, e.StatusCode)
		require.Equal(t, "Hel", got.Text)
	}
	// with the type in the event's line only
	stream := modeltest.Stream{Events: []modeltest.Event{{Type: "error", Data: `{"message":"odd","code":503}`}}}
	s := modeltest.Serve(t, stream)
	e, _ := askFor(t, s)
	require.Equal(t, model.Error{Code: model.CodeOverloaded, Message: "odd", Retryable: true}, s.Words(t, e))
}

func TestJSONInPlaceOfAStream(t *testing.T) {
	s := modeltest.Serve(t, modeltest.Failure(http.StatusOK, `{"error":{"message":"no","code":401}}`))
	e, _ := askFor(t, s)
	require.Equal(t, model.Error{Code: model.CodeAuthFailed, Message: "no"}, s.Words(t, e))
	e, _ = askFor(t, modeltest.Serve(t, modeltest.Failure(http.StatusOK, `{"error":null,"choices":[]}`)))
	require.Equal(t, model.CodeProvider, e.Code)
	require.False(t, e.Retryable)
}

func TestCutStream(t *testing.T) {
	for name, stream := range map[string]modeltest.Stream{
		"closed in good order": unframed(deltas(`null`, `{"content":"Hel"}`)),
		"dropped":              {Events: deltas(`null`, `{"content":"Hel"}`).Events, Cut: true},
		"in a tool call": unframed(deltas(`null`, `{"content":"Hel"}`,
			`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`)),
		"within an event": {Events: deltas(`null`, `{"content":"Hel"}`).Events, Tail: "data: {\"choi", Cut: true},
		"within an event, closed in good order": {
			Events: deltas(`null`, `{"content":"Hel"}`).Events,
			Tail:   "data: " + chunk(`{"content":"lo"}`, `"stop"`) + "\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, got := askFor(t, modeltest.Serve(t, stream))
			require.Equal(t, model.CodeUnavailable, e.Code)
			require.True(t, e.Retryable)
			require.Equal(t, "Hel", got.Text)
			for _, event := range got.Events {
				require.NotEqual(t, model.ToolCallEnd{}, event)
			}
		})
	}
	e, _ := askFor(t, modeltest.Serve(t, modeltest.Stream{}))
	require.Equal(t, model.CodeUnavailable, e.Code, "an empty stream")
}

func TestMalformedToolCalls(t *testing.T) {
	for name, stream := range map[string]modeltest.Stream{
		"no name": deltas(`"tool_calls"`, `{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{}"}}]}`),
		"more after the end": deltas(`"tool_calls"`,
			`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`,
			`{"tool_calls":[{"index":1,"id":"b","function":{"name":"f","arguments":"{}"}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}`),
	} {
		t.Run(name, func(t *testing.T) {
			e, _ := askFor(t, modeltest.Serve(t, stream))
			require.Equal(t, model.CodeProvider, e.Code)
			require.True(t, e.Retryable)
		})
	}
}

// TestNoSuchHost: the error names the model, the host and the setting to look
// at, and nothing else of the URL.
func TestNoSuchHost(t *testing.T) {
	client := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "api.example.com", IsNotFound: true}}
	}}}
	m := openai.New("gpt-x", &openai.Options{
		APIKey: testKey, BaseURL: "https://user:hunter2@api.example.com/v1?key=hunter2", HTTPClient: client,
	})
	_, err := m.Generate(t.Context(), hello(), nil)
	var e *model.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, "model call to gpt-x failed: dial api.example.com: no such host (check model.baseURL)", e.Message)
	require.Equal(t, model.CodeUnavailable, e.Code)
	require.True(t, e.Retryable)
}

func TestNoConnection(t *testing.T) {
	client := &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
		return nil, errors.New("refused by " + testKey)
	})}
	m := openai.New("m", &openai.Options{BaseURL: "http://secret:secret@away.invalid/secret/v1?key=secret", HTTPClient: client})
	_, err := m.Generate(t.Context(), hello(), nil)
	var e *model.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, model.CodeUnavailable, e.Code)
	require.True(t, e.Retryable)
	require.Equal(t, "model call to m failed: away.invalid: no connection to the provider, or it was lost (check model.baseURL)", e.Message)
	require.NotContains(t, e.Error(), "secret")
	require.NotContains(t, e.Error(), testKey)
}

func TestClientTimeout(t *testing.T) {
	for _, events := range [][]modeltest.Event{nil, deltas(`null`, `{"content":"x"}`).Events} {
		s := modeltest.Serve(t, modeltest.Stream{Events: events, Hang: true})
		opts := options(s)
		opts.HTTPClient.Timeout = 50 * time.Millisecond
		_, err := openai.New("m", opts).Generate(t.Context(), hello(), func(model.Event) error { return nil })
		var e *model.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, model.CodeTimeout, e.Code)
		require.True(t, e.Retryable)
	}
}

func TestUnusableRequests(t *testing.T) {
	s := modeltest.Serve(t, deltas(`"stop"`))
	for _, base := range []string{"api.example.com/v1", "ftp://x/v1", "http://", "http://[::1", "%"} {
		opts := options(s)
		opts.BaseURL = base
		_, err := openai.New("m", opts).Generate(t.Context(), hello(), nil)
		var e *model.Error
		require.ErrorAs(t, err, &e, base)
		require.Equal(t, model.CodeInvalidRequest, e.Code, base)
	}
	req := hello()
	req.Tools = []model.ToolSpec{{Name: "f", InputSchema: json.RawMessage(`{`)}}
	_, err := modelOn(s).Generate(t.Context(), req, nil)
	var e *model.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, model.CodeInvalidRequest, e.Code)
	require.False(t, e.Retryable)
	require.Empty(t, s.Requests())
}

func TestContext(t *testing.T) {
	s := modeltest.Serve(t, modeltest.Stream{Events: deltas(`null`, `{"content":"x"}`).Events, Hang: true})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := modelOn(s).Generate(ctx, hello(), func(model.Event) error {
		cancel()
		return nil
	})
	var e *model.Error
	require.ErrorAs(t, err, &e)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, model.CodeProvider, e.Code)
	require.False(t, e.Retryable)

	_, err = modelOn(s).Generate(ctx, hello(), nil) // cancelled before
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, s.Requests(), 1)

	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = modelOn(s).Generate(ctx, hello(), func(model.Event) error { return nil })
	require.ErrorAs(t, err, &e)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, model.CodeTimeout, e.Code)
	require.True(t, e.Retryable)
}

func TestEmitErrorIsReturnedAsItIs(t *testing.T) {
	stop := errors.New("stop")
	for _, delta := range []string{
		`{"content":"x"}`, `{"reasoning":"x"}`, `{"refusal":"x"}`,
		`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`,
	} {
		s := modeltest.Serve(t, modeltest.Stream{Events: deltas(`null`, delta).Events, Hang: true})
		_, err := modelOn(s).Generate(t.Context(), hello(), func(model.Event) error { return stop })
		require.Same(t, stop, err)
	}
}

func TestErrorText(t *testing.T) {
	message := "Incorrect API key provided: sk-abcde***wxyz or " + testKey +
		". Ask https://platform.openai.com/account/api-keys?x=1 for another one."
	body, err := json.Marshal(map[string]any{"error": map[string]any{"message": message}})
	require.NoError(t, err)
	s := modeltest.Serve(t, modeltest.Failure(http.StatusUnauthorized, string(body)))
	e, _ := askFor(t, s)
	require.Equal(t, "Incorrect API key provided: [key] or [key]. Ask [URL] for another one.", s.Words(t, e).Message)

	long := words(3000) // 18,000 bytes, with a rune across the limit for some offset
	for _, offset := range []string{"", "x", "xx"} {
		body, err = json.Marshal(map[string]any{"error": map[string]any{"message": offset + long}})
		require.NoError(t, err)
		s = modeltest.Serve(t, modeltest.Failure(http.StatusBadRequest, string(body)))
		e, _ = askFor(t, s)
		require.True(t, strings.HasPrefix(offset+long, s.Words(t, e).Message))
		require.True(t, utf8.ValidString(e.Message))
		require.LessOrEqual(t, len(e.Message), model.MaxErrorText)
		require.Greater(t, len(e.Message), model.MaxErrorText-utf8.UTFMax)
	}
}
