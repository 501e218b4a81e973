package auth_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/auth/authtest"
)

func TestBearerTokens(t *testing.T) {
	authenticate := auth.BearerTokens([]auth.Token{
		{Token: "all", Operations: []string{"*"}, Sessions: []string{"*"}},
		{Token: "some", Operations: []string{"status", "chat*"}, Sessions: []string{"team/*", "*-x-*-y", "exact"}},
		{Token: "twice", Operations: []string{"start"}, Sessions: []string{"a"}},
		{Token: "twice", Operations: []string{"status"}, Sessions: []string{"b"}},
		{Token: "nothing"},
		{Token: "nowhere", Operations: []string{"*"}},
		{Token: "", Operations: []string{"*"}, Sessions: []string{"*"}},
	})
	unknown, no := auth.ErrUnauthorized, auth.ErrForbidden
	for _, tc := range []struct {
		header  string
		op      auth.Operation
		session string
		want    error
	}{
		{"", "status", "s", unknown},
		{"Bearer", "status", "s", unknown},
		{"Bearer ", "status", "s", unknown},
		{"Basic all", "status", "s", unknown},
		{"all", "status", "s", unknown},
		{"Bearer ALL", "status", "s", unknown},
		{"Bearer all2", "status", "s", unknown},
		{"Bearer all", "status", "s", nil},
		{"bearer  all", "erase", "a/b", nil},
		{"Bearer some", "status", "", nil},
		{"Bearer some", "start", "", no},
		{"Bearer some", "chat-stream", "team/a/b", nil},
		{"Bearer some", "chat", "team/", nil},
		{"Bearer some", "status", "team", no},
		{"Bearer some", "status", "xteam/", no},
		{"Bearer some", "status", "exact", nil},
		{"Bearer some", "status", "exactly", no},
		{"Bearer some", "status", "a-x-b-x-c-y", nil},
		{"Bearer some", "status", "-x--y", nil},
		{"Bearer some", "status", "-x-y", no},
		{"Bearer twice", "start", "a", nil},
		{"Bearer twice", "status", "b", nil},
		{"Bearer twice", "status", "a", no},
		{"Bearer nothing", "status", "", no},
		{"Bearer nowhere", "status", "s", no},
		{"Bearer nowhere", "sessions", "", no},
	} {
		r, err := http.NewRequest("GET", "/", nil)
		require.NoError(t, err)
		if tc.header != "" {
			r.Header.Set("Authorization", tc.header)
		}
		got := authenticate(r, tc.op, tc.session)
		require.Equal(t, tc.want, got, "%+v", tc)
	}
}

func TestAnyOf(t *testing.T) {
	yes := func(*http.Request, auth.Operation, string) error { return nil }
	no := func(err error) auth.Authenticator {
		return func(*http.Request, auth.Operation, string) error { return err }
	}
	own := &auth.Refusal{Status: 403, Message: "own"}
	broken := errors.New("the key server is down")
	ask := func(auths ...auth.Authenticator) error { return authtest.As(auth.AnyOf(auths...), "", "status", "s") }
	require.ErrorIs(t, ask(), auth.ErrUnauthorized)
	require.NoError(t, ask(yes))
	require.NoError(t, ask(no(auth.ErrForbidden), no(broken), yes))
	require.NoError(t, ask(yes, no(broken)), "the first that allows decides")
	require.Equal(t, own, ask(no(auth.ErrUnauthorized), no(own), no(auth.ErrForbidden)))
	require.Equal(t, broken, ask(no(own), no(auth.ErrUnauthorized), no(broken)))
	payment := &auth.Refusal{Status: 402, Message: "the plan has ended"}
	require.Equal(t, payment, ask(no(auth.ErrUnauthorized), no(payment)), "a known caller's refusal counts first")
	down := &auth.Refusal{Status: 503, Message: "the directory is down"}
	require.Equal(t, down, ask(no(payment), no(down)))
	require.ErrorIs(t, ask(no(auth.ErrUnauthorized), no(auth.ErrUnauthorized)), auth.ErrUnauthorized)
}
