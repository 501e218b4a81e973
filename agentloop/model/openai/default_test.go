package openai_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/openai"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The bound on the answer has another name at OpenAI's own servers.
func TestServersAndTheirBound(t *testing.T) {
	t.Setenv("OPENAI_BASE_URL", "http://leak.invalid/v1")
	for _, c := range []struct{ base, url, field string }{
		{"", "https://api.openai.com/v1/chat/completions", "max_completion_tokens"},
		{"https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions", "max_completion_tokens"},
		{"https://eu.api.openai.com/v1/", "https://eu.api.openai.com/v1/chat/completions", "max_completion_tokens"},
		{"https://api.x.ai/v1", "https://api.x.ai/v1/chat/completions", "max_tokens"},
		{"http://127.0.0.1:11434/v1", "http://127.0.0.1:11434/v1/chat/completions", "max_tokens"},
	} {
		client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			require.Equal(t, c.url, r.URL.String())
			var body map[string]any
			require.NoError(t, json.NewDecoder(r.Body).Decode(&body))
			require.EqualValues(t, 5, body[c.field])
			require.Len(t, body, 5) // and not the other
			return &http.Response{
				StatusCode: http.StatusOK,
				Header:     http.Header{"Content-Type": {"text/event-stream"}},
				Body:       io.NopCloser(strings.NewReader("data: " + chunk(`{}`, `"stop"`) + "\n\n")),
				Request:    r,
			}, nil
		})}
		m := openai.New("m", &openai.Options{BaseURL: c.base, MaxOutputTokens: 5, HTTPClient: client})
		_, err := m.Generate(t.Context(), hello(), func(model.Event) error { return nil })
		require.NoError(t, err)
	}
}
