package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
)

type callerKey struct{}

// TestCallerFromMiddleware: a program around the server finds out who calls,
// and its authenticator learns it from the context: also about a session that
// only the body names.
func TestCallerFromMiddleware(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) {
		o.Auth = func(r *http.Request, _ auth.Operation, session string) error {
			caller, _ := r.Context().Value(callerKey{}).(string)
			switch {
			case caller == "":
				return auth.ErrUnauthorized
			case session != "" && !strings.HasPrefix(session, caller+"/"):
				return &auth.Refusal{Status: 403, Message: caller + " has no such session"}
			}
			return nil
		}
	})
	a.append("ann/1", created("ann/1"), ended("ann/1", `1`))
	a.append("bob/1", created("bob/1"), ended("bob/1", `1`))
	program := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if who := r.Header.Get("X-Login"); who != "" {
			r = r.WithContext(context.WithValue(r.Context(), callerKey{}, who))
		}
		a.srv.ServeHTTP(w, r)
	}))
	defer program.Close()
	a.http, program = program, a.http
	defer func() { a.http, program = program, a.http }()

	a.get("/status?sessionId=ann%2F1").failed(t, 401, api.CodeUnauthorized)
	require.Equal(t, 200, a.get("/status?sessionId=ann%2F1", "X-Login", "ann").status)
	got := a.get("/sessions/bob%2F1", "X-Login", "ann").failed(t, 403, api.CodeUnauthorized)
	require.Equal(t, "ann has no such session", got.Error)
	got = a.post("/resume", `{"sessionId":"bob/1"}`, "X-Login", "ann").failed(t, 403, api.CodeUnauthorized)
	require.Equal(t, "ann has no such session", got.Error)
	var page api.Page[api.Summary]
	a.get("/sessions", "X-Login", "ann").decode(t, &page)
	require.Equal(t, 1, page.Total, "a listing leaves out what is refused")
}

// TestAuthError: a refusal has its own status and message.
func TestAuthError(t *testing.T) {
	var refusal error
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) {
		o.Auth = func(*http.Request, auth.Operation, string) error { return refusal }
	})
	long := strings.Repeat("é", 8<<10)
	for _, tc := range []struct {
		err    error
		status int
		text   string
	}{
		{&auth.Refusal{Message: "sign in: <https://id.example>"}, 401, "sign in: <https://id.example>"},
		{&auth.Refusal{Status: 401, Message: "expired"}, 401, "expired"},
		{&auth.Refusal{Status: 403, Message: "read only"}, 403, "read only"},
		{&auth.Refusal{Status: 403}, 403, "not allowed"},
		{&auth.Refusal{}, 401, "authentication is required"},
		{fmt.Errorf("inner secret: %w", &auth.Refusal{Status: 403, Message: "read only"}), 403, "read only"},
		{fmt.Errorf("inner secret: %w", auth.ErrForbidden), 403, "not allowed"},
		{&auth.Refusal{Status: 403, Message: "x" + long}, 403, "x" + long[:8<<10-2]},
		{&auth.Refusal{Status: 402, Message: "the plan has ended"}, 402, "the plan has ended"},
		{&auth.Refusal{Status: 404, Message: "no such session"}, 404, "no such session"},
		{&auth.Refusal{Status: 429}, 429, "not allowed"},
		{&auth.Refusal{Status: 599, Message: "the directory is down"}, 599, "the directory is down"},
		{fmt.Errorf("inner secret: %w", &auth.Refusal{Status: 503}), 503, "authentication is not available"},
		{&auth.Refusal{Status: 200, Message: "secret"}, 500, "internal error"},
		{&auth.Refusal{Status: 302, Message: "secret"}, 500, "internal error"},
		{&auth.Refusal{Status: 600, Message: "secret"}, 500, "internal error"},
	} {
		refusal = tc.err
		got := a.get("/sessions")
		var body api.ErrorBody
		got.decode(t, &body)
		require.Equal(t, tc.status, got.status)
		require.Equal(t, tc.text, body.Error)
		require.True(t, utf8.ValidString(body.Error))
		require.Equal(t, tc.status == 401, got.header.Get("WWW-Authenticate") != "")
	}
}

// A session that a hook refuses with any status below 500 is left out of
// listings; from 500 on nobody could decide, and the listing fails.
func TestAuthErrorInListings(t *testing.T) {
	status := 404
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) {
		o.Auth = func(_ *http.Request, _ auth.Operation, session string) error {
			if session == "hidden" {
				return &auth.Refusal{Status: status}
			}
			return nil
		}
	})
	a.append("hidden", created("hidden"), ended("hidden", `1`))
	a.append("shown", created("shown"), ended("shown", `1`))
	var page api.Page[api.Summary]
	a.get("/sessions").decode(t, &page)
	require.Equal(t, 1, page.Total)
	a.get("/sessions/hidden").failed(t, 404, api.CodeNotFound)
	status = 503
	a.get("/sessions").failed(t, 503, api.CodeUnavailable)
}
