package openai_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/helixd/helixd/agentloop/memory/embedder/openai"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/modeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testKey = "sk-test-0123456789"

// serve starts a server that answers with a body.
func serve(t *testing.T, status int, body string) (*modeltest.Server, *openai.Options) {
	t.Helper()
	s := modeltest.Serve(t, modeltest.Failure(status, body))
	return s, &openai.Options{APIKey: testKey, BaseURL: s.URL + "/v1", HTTPClient: s.Client()}
}

func TestEmbed(t *testing.T) {
	t.Setenv("OPENAI_BASE_URL", "http://leak.invalid/v1")
	t.Setenv("OPENAI_ORG_ID", "leak")
	s, opts := serve(t, http.StatusOK, `{"object":"list","model":"m-1","error":null,"usage":{"prompt_tokens":2,"total_tokens":2},"data":[
		{"object":"embedding","index":1,"embedding":[-0.25,1e-3]},
		{"object":"embedding","index":0,"embedding":[3,4]}]}`)
	e := openai.New("m", opts)
	require.Equal(t, "m", e.Model())
	vectors, err := e.Embed(t.Context(), []string{"one", "two"})
	require.NoError(t, err)
	require.Equal(t, [][]float32{{3, 4}, {-0.25, 1e-3}}, vectors)

	opts.Dimensions = 2
	e = openai.New("m", opts)
	require.Equal(t, "m/2", e.Model())
	_, err = e.Embed(t.Context(), []string{"one", "two"})
	require.NoError(t, err)

	requests := s.Requests()
	require.Len(t, requests, 2)
	require.Equal(t, "/v1/embeddings", requests[0].Path)
	require.Equal(t, "Bearer "+testKey, requests[0].Header.Get("Authorization"))
	require.Empty(t, requests[0].Header.Get("OpenAI-Organization"))
	require.JSONEq(t, `{"model":"m","input":["one","two"]}`, string(requests[0].Body))
	require.JSONEq(t, `{"model":"m","input":["one","two"],"dimensions":2}`, string(requests[1].Body))
	require.Panics(t, func() { openai.New("", nil) })
}

func fails(t *testing.T, opts *openai.Options) *model.Error {
	t.Helper()
	_, err := openai.New("m", opts).Embed(t.Context(), []string{"a secret", "another"})
	var e *model.Error
	require.ErrorAs(t, err, &e)
	require.NotContains(t, err.Error(), testKey)
	require.NotContains(t, err.Error(), "://")
	return e
}

func TestFailures(t *testing.T) {
	for _, c := range []struct {
		status    int
		body      string
		code      string
		retryable bool
		message   string
	}{
		{401, `{"error":{"message":"wrong key ` + testKey + `, see https://x.test/keys"}}`, model.CodeAuthFailed, false, "wrong key [key], see [URL]"},
		{429, `{"error":{"message":"slow down"}}`, model.CodeRateLimited, true, "slow down"},
		{503, ``, model.CodeOverloaded, true, "Service Unavailable"},
		{500, `<html>`, model.CodeUnavailable, true, "Internal Server Error"},
		{400, `{"error":{"message":"This model's maximum context length is 8192 tokens"}}`, model.CodeContextLength, false, "This model's maximum context length is 8192 tokens"},
		{200, `{"error":{"message":"no","code":401}}`, model.CodeAuthFailed, false, "no"},
		{200, `<html>`, model.CodeProvider, false, "the provider's answer cannot be read"},
		{200, `{"data":[{"index":0,"embedding":"AAAA"}]}`, model.CodeProvider, false, "the provider's answer cannot be read"},
		{200, `{"data":[]}`, model.CodeProvider, false, "the answer has 0 numbers for text 0"},
		{200, `{"data":[{"index":0,"embedding":[1]}]}`, model.CodeProvider, false, "the answer has 0 numbers for text 1"},
		{200, `{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}`, model.CodeProvider, false, "the answer names a text 0 that it was not asked for, or twice"},
		{200, `{"data":[{"index":2,"embedding":[1]}]}`, model.CodeProvider, false, "the answer names a text 2 that it was not asked for, or twice"},
	} {
		s, opts := serve(t, c.status, c.body)
		e := fails(t, opts)
		message := e.Message
		if !strings.HasPrefix(message, "the answer ") { // which has come, and whose content is wrong
			message = s.Words(t, e).Message
		}
		require.Equal(t, c.message, message)
		require.Equal(t, c.code, e.Code, c.body)
		require.Equal(t, c.retryable, e.Retryable, c.body)
		require.Len(t, s.Requests(), 1, "it does not retry")
	}
	_, opts := serve(t, http.StatusOK, `{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1]}]}`)
	opts.Dimensions = 2
	require.Equal(t, "the answer has 1 numbers for text 0", fails(t, opts).Message)
}

// Texts and the key go to the configured server only.
func TestRedirects(t *testing.T) {
	other, opts := serve(t, http.StatusOK, `{"data":[]}`)
	asked := httptest.NewServer(http.RedirectHandler(other.URL+"/v1/embeddings", http.StatusTemporaryRedirect))
	defer asked.Close()
	opts.BaseURL = asked.URL
	e := fails(t, opts)
	require.Empty(t, other.Requests())
	require.Equal(t, model.CodeInvalidRequest, e.Code)
	require.False(t, e.Retryable)
	require.Contains(t, e.Message, " answered 307 Temporary Redirect: redirects are not followed (check memory.embedder.baseURL)")
}

func TestNoConnection(t *testing.T) {
	_, opts := serve(t, http.StatusOK, `{}`)
	opts.BaseURL = "ftp://x/v1"
	require.Equal(t, model.CodeInvalidRequest, fails(t, opts).Code)

	opts.BaseURL = "http://secret.invalid/v1"
	opts.HTTPClient = &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
		return nil, errors.New("refused by " + testKey)
	})}
	e := fails(t, opts)
	require.Equal(t, model.CodeUnavailable, e.Code)
	require.True(t, e.Retryable)

	s := modeltest.Serve(t, modeltest.Stream{ContentType: "application/json", Tail: `{"data":[{"ind`, Cut: true})
	e = fails(t, &openai.Options{BaseURL: s.URL, HTTPClient: s.Client()})
	require.Equal(t, model.CodeUnavailable, e.Code)
	require.True(t, e.Retryable, "an answer that was cut off")
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestContext(t *testing.T) {
	s := modeltest.Serve(t, modeltest.Stream{ContentType: "application/json", Tail: `{"data":`, Hang: true})
	ctx, cancel := context.WithCancel(t.Context())
	client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		res, err := s.Client().Transport.RoundTrip(r)
		cancel()
		return res, err
	})}
	_, err := openai.New("m", &openai.Options{BaseURL: s.URL, HTTPClient: client}).Embed(ctx, []string{"x"})
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, strings.Contains(err.Error(), s.URL))
}
