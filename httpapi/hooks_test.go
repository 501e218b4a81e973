package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
)

type callerKey struct{}

// TestCallerFromMiddleware: a program around the server finds out who calls,
// and its authenticator learns it from the context: also about a session that
// only the body names.
func TestCallerFromMiddleware(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) {
		o.Auth = func(r *http.Request, _ httpapi.Operation, session string) error {
			caller, _ := r.Context().Value(callerKey{}).(string)
			switch {
			case caller == "":
				return httpapi.ErrUnauthorized
			case session != "" && !strings.HasPrefix(session, caller+"/"):
				return &httpapi.AuthError{Status: 403, Message: caller + " has no such session"}
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

	a.get("/status?sessionId=ann%2F1").failed(t, 401, httpapi.CodeUnauthorized)
	require.Equal(t, 200, a.get("/status?sessionId=ann%2F1", "X-Login", "ann").status)
	got := a.get("/sessions/bob%2F1", "X-Login", "ann").failed(t, 403, httpapi.CodeUnauthorized)
	require.Equal(t, "ann has no such session", got.Error)
	got = a.post("/resume", `{"sessionId":"bob/1"}`, "X-Login", "ann").failed(t, 403, httpapi.CodeUnauthorized)
	require.Equal(t, "ann has no such session", got.Error)
	var page httpapi.Page[httpapi.Summary]
	a.get("/sessions", "X-Login", "ann").decode(t, &page)
	require.Equal(t, 1, page.Total, "a listing leaves out what is refused")
}

// TestAuthError: document 004's { error, status? }.
func TestAuthError(t *testing.T) {
	var refusal error
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) {
		o.Auth = func(*http.Request, httpapi.Operation, string) error { return refusal }
	})
	long := strings.Repeat("é", 8<<10)
	for _, tc := range []struct {
		err    error
		status int
		text   string
	}{
		{&httpapi.AuthError{Message: "sign in: <https://id.example>"}, 401, "sign in: <https://id.example>"},
		{&httpapi.AuthError{Status: 401, Message: "expired"}, 401, "expired"},
		{&httpapi.AuthError{Status: 403, Message: "read only"}, 403, "read only"},
		{&httpapi.AuthError{Status: 403}, 403, "not allowed"},
		{&httpapi.AuthError{}, 401, "authentication is required"},
		{fmt.Errorf("inner secret: %w", &httpapi.AuthError{Status: 403, Message: "read only"}), 403, "read only"},
		{fmt.Errorf("inner secret: %w", httpapi.ErrForbidden), 403, "not allowed"},
		{&httpapi.AuthError{Status: 403, Message: "x" + long}, 403, "x" + long[:8<<10-2]},
		{&httpapi.AuthError{Status: 402, Message: "the plan has ended"}, 402, "the plan has ended"},
		{&httpapi.AuthError{Status: 404, Message: "no such session"}, 404, "no such session"},
		{&httpapi.AuthError{Status: 429}, 429, "not allowed"},
		{&httpapi.AuthError{Status: 599, Message: "the directory is down"}, 599, "the directory is down"},
		{fmt.Errorf("inner secret: %w", &httpapi.AuthError{Status: 503}), 503, "authentication is not available"},
		{&httpapi.AuthError{Status: 200, Message: "secret"}, 500, "internal error"},
		{&httpapi.AuthError{Status: 302, Message: "secret"}, 500, "internal error"},
		{&httpapi.AuthError{Status: 600, Message: "secret"}, 500, "internal error"},
	} {
		refusal = tc.err
		got := a.get("/sessions")
		var body httpapi.ErrorBody
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
		o.Auth = func(_ *http.Request, _ httpapi.Operation, session string) error {
			if session == "hidden" {
				return &httpapi.AuthError{Status: status}
			}
			return nil
		}
	})
	a.append("hidden", created("hidden"), ended("hidden", `1`))
	a.append("shown", created("shown"), ended("shown", `1`))
	var page httpapi.Page[httpapi.Summary]
	a.get("/sessions").decode(t, &page)
	require.Equal(t, 1, page.Total)
	a.get("/sessions/hidden").failed(t, 404, httpapi.CodeNotFound)
	status = 503
	a.get("/sessions").failed(t, 503, httpapi.CodeUnavailable)
}

func TestAnyOf(t *testing.T) {
	yes := func(*http.Request, httpapi.Operation, string) error { return nil }
	no := func(err error) httpapi.Authenticator {
		return func(*http.Request, httpapi.Operation, string) error { return err }
	}
	own := &httpapi.AuthError{Status: 403, Message: "own"}
	broken := errors.New("the key server is down")
	ask := func(auths ...httpapi.Authenticator) error { return as(httpapi.AnyOf(auths...), "", "status", "s") }
	require.ErrorIs(t, ask(), httpapi.ErrUnauthorized)
	require.NoError(t, ask(yes))
	require.NoError(t, ask(no(httpapi.ErrForbidden), no(broken), yes))
	require.NoError(t, ask(yes, no(broken)), "the first that allows decides")
	require.Equal(t, own, ask(no(httpapi.ErrUnauthorized), no(own), no(httpapi.ErrForbidden)))
	require.Equal(t, broken, ask(no(own), no(httpapi.ErrUnauthorized), no(broken)))
	payment := &httpapi.AuthError{Status: 402, Message: "the plan has ended"}
	require.Equal(t, payment, ask(no(httpapi.ErrUnauthorized), no(payment)), "a known caller's refusal counts first")
	down := &httpapi.AuthError{Status: 503, Message: "the directory is down"}
	require.Equal(t, down, ask(no(payment), no(down)))
	require.ErrorIs(t, ask(no(httpapi.ErrUnauthorized), no(httpapi.ErrUnauthorized)), httpapi.ErrUnauthorized)
}
