package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/remote"
	"github.com/helixd/helixd/httpapi/client"
)

func TestErrors(t *testing.T) {
	s := newServer(t)
	for _, tc := range []struct {
		body, header string
		want         client.Error
		text         string
	}{
		{
			`{"error":"the session has gone on","code":"SEQUENCE_CONFLICT","detail":{"head":7},"requestId":"r-1"}`, "r-1",
			client.Error{Code: "SEQUENCE_CONFLICT", Message: "the session has gone on", Detail: json.RawMessage(`{"head":7}`), RequestID: "r-1"},
			"client: status 409 SEQUENCE_CONFLICT: the session has gone on (request r-1)",
		},
		{`{"error":"e","code":"C","detail":null}`, "a b", client.Error{Code: "C", Message: "e"}, "client: status 409 C: e"},
		{`<html>nginx</html>`, "r-2", client.Error{RequestID: "r-2"}, "client: status 409 (request r-2)"},
		{``, "", client.Error{}, "client: status 409"},
		{`{"error":"a s3cret-token","code":"C","detail":["s3cret-token"]}`, "", client.Error{Code: "C", Message: "a [hidden]"}, "client: status 409 C: a [hidden]"},
		{`{"error":"e","code":"C","detail":{"see":"http://inside/"}}`, "", client.Error{Code: "C", Message: "e"}, "client: status 409 C: e"},
		{`{"error":"e","code":"C","detail":"` + strings.Repeat("x", 9000) + `"}`, "", client.Error{Code: "C", Message: "e"}, "client: status 409 C: e"},
	} {
		s.instead(func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("X-Request-Id", tc.header)
			answers(w, 409, tc.body)
			return true
		})
		c := client.New(s.http.URL, &client.Options{Token: client.StaticToken("s3cret-token")})
		_, err := c.Session(ctxOf(t), "s")
		e := refused(t, err, 409, tc.want.Code)
		require.Equal(t, tc.want.Message, e.Message)
		require.Equal(t, tc.want.Detail, e.Detail)
		require.Equal(t, tc.want.RequestID, e.RequestID)
		require.EqualError(t, err, tc.text)
		require.False(t, remote.Retryable(err))
	}
	s.instead(nil)
	_, err := s.client().Session(ctxOf(t), "nobody")
	require.True(t, remote.IsNotFound(err))
}

func TestTokensAndHeaders(t *testing.T) {
	s := newServer(t)
	var got []http.Header
	s.instead(func(w http.ResponseWriter, r *http.Request) bool {
		got = append(got, r.Header)
		answers(w, 503, "")
		return true
	})
	n := 0
	c := client.New(s.http.URL, &client.Options{
		Headers: map[string]string{"X-Tenant": "t"}, RetryBase: 1, MaxRetries: 2,
		Token: func(context.Context) (string, error) {
			n++
			return []string{"", "first", "second"}[n-1], nil
		},
	})
	refused(t, c.Health(ctxOf(t)), 503, "")
	require.Len(t, got, 3)
	for i, want := range []string{"", "Bearer first", "Bearer second"} {
		require.Equal(t, want, got[i].Get("Authorization"), "asked for before every attempt")
		require.Equal(t, "t", got[i].Get("X-Tenant"))
	}
	cause := errors.New("the vault at https://vault/?key=1 is shut")
	c = client.New(s.http.URL, &client.Options{Token: func(context.Context) (string, error) { return "", cause }})
	err := c.Health(ctxOf(t))
	require.ErrorIs(t, err, cause)
	require.NotContains(t, err.Error(), "vault")
	require.Len(t, got, 3)
}

// An answer that is JSON and not the server's is no answer.
func TestAnswersOfSomebodyElse(t *testing.T) {
	s := newServer(t)
	for _, body := range []string{`{}`, `null`, `[]`, `7`, ``, `<html>`} {
		s.instead(func(w http.ResponseWriter, _ *http.Request) bool { answers(w, 200, body); return true })
		for _, tc := range posts {
			if strings.HasPrefix(tc.name, "interrupt") || strings.HasPrefix(tc.name, "abort") || tc.name == "rollback" {
				continue
			}
			require.ErrorIs(t, tc.call(ctxOf(t), s.client()), client.ErrMalformed, "%s answered with %s", tc.name, body)
		}
		require.ErrorIs(t, s.client().Health(ctxOf(t)), client.ErrMalformed)
		_, err := s.client().Ready(ctxOf(t))
		require.ErrorIs(t, err, client.ErrMalformed)
	}
}

func TestNotReadyIsAnAnswer(t *testing.T) {
	s := newServer(t)
	s.instead(func(w http.ResponseWriter, _ *http.Request) bool {
		answers(w, 503, `{"ready":false,"backend":"jetstream","refuses":"the disk is full"}`)
		return true
	})
	ready, err := s.client().Ready(ctxOf(t))
	require.NoError(t, err)
	require.False(t, ready.Ready)
	require.Equal(t, "the disk is full", ready.Refuses)
	require.Equal(t, 1, s.got("/readyz"))

	s.instead(func(w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, "<html>bad gateway</html>", http.StatusServiceUnavailable)
		return true
	})
	_, err = s.client().Ready(ctxOf(t))
	refused(t, err, 503, "")
	require.Equal(t, 4, s.got("/readyz"))
}
