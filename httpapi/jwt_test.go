package httpapi_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/auth/authtest"
)

// TestJWTOverHTTP: tokens and JWTs side by side, and what they can't do.
func TestJWTOverHTTP(t *testing.T) {
	key := authtest.NewEd25519(t)
	now := authtest.Now
	byJWT := authtest.JWT(t, auth.JWTOptions{JWKS: authtest.KeySet(t, authtest.Public(key, "k", "")), Now: func() time.Time { return now }, Leeway: -1})
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) {
		o.Auth = auth.AnyOf(auth.BearerTokens([]auth.Token{{Token: "t0ken", Operations: []string{"*"}, Sessions: []string{"mine"}}}), byJWT)
	})
	for _, id := range []string{"mine", "yours", "ours"} {
		a.append(id, created(id), ended(id, `1`))
	}
	bearer := func(token string) []string { return []string{"Authorization", "Bearer " + token} }
	token := authtest.Signed(t, jose.EdDSA, key, "k", authtest.GoodClaims().With(authtest.Claims{"helix_sessions": []string{"yours"}}))

	require.Equal(t, 200, a.get("/status?sessionId=mine", bearer("t0ken")...).status)
	a.get("/status?sessionId=yours", bearer("t0ken")...).failed(t, 403, api.CodeUnauthorized)
	require.Equal(t, 200, a.get("/status?sessionId=yours", bearer(token)...).status)
	a.get("/status?sessionId=mine", bearer(token)...).failed(t, 403, api.CodeUnauthorized)
	var page api.Page[api.Summary]
	a.get("/sessions", bearer(token)...).decode(t, &page)
	require.Equal(t, 1, page.Total)
	require.Equal(t, "yours", page.Items[0].SessionID)
	for _, wrong := range []string{"wrong", token + "x", ""} {
		got := a.get("/status?sessionId=yours", bearer(wrong)...)
		require.Equal(t, "authentication is required", got.failed(t, 401, api.CodeUnauthorized).Error)
		require.Equal(t, "Bearer", got.header.Get("WWW-Authenticate"))
	}

	now = authtest.Now.Add(time.Hour + time.Second)
	a.get("/status?sessionId=yours", bearer(token)...).failed(t, 401, api.CodeUnauthorized)
	require.NotContains(t, a.logs.String(), "level=ERROR")
}

// TestKeysChange: keys come and go with their file, within a second, and with
// them what they have signed. A file that has gone bad lets nobody in.
func TestKeysChange(t *testing.T) {
	first, second := authtest.NewEd25519(t), authtest.NewEd25519(t)
	file := filepath.Join(t.TempDir(), "keys.json")
	write := func(content []byte) {
		next := file + ".next"
		require.NoError(t, os.WriteFile(next, content, 0o600))
		require.NoError(t, os.Rename(next, file))
	}
	write(authtest.KeySet(t, authtest.Public(first, "first", "")))
	now := authtest.Now
	authenticate := authtest.JWT(t, auth.JWTOptions{JWKSFile: file, Now: func() time.Time { return now }})
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) { o.Auth = authenticate })
	old := []string{"Authorization", "Bearer " + authtest.Signed(t, jose.EdDSA, first, "first", authtest.GoodClaims())}
	fresh := []string{"Authorization", "Bearer " + authtest.Signed(t, jose.EdDSA, second, "second", authtest.GoodClaims())}
	expect := func(oldStatus, freshStatus int) {
		t.Helper()
		require.Equal(t, oldStatus, a.get("/sessions", old...).status)
		require.Equal(t, freshStatus, a.get("/sessions", fresh...).status)
	}
	later := func() { now = now.Add(time.Second) }

	expect(200, 401)
	write(authtest.KeySet(t, authtest.Public(first, "first", ""), authtest.Public(second, "second", "")))
	expect(200, 401) // the file was looked at less than a second ago
	later()
	expect(200, 200)
	write(authtest.KeySet(t, authtest.Public(second, "second", "")))
	later()
	expect(401, 200) // also a token that had been found good

	require.NotContains(t, a.logs.String(), "level=ERROR")
	write([]byte(`{"keys":`))
	later()
	expect(500, 500)
	require.Equal(t, "internal error", a.get("/sessions", fresh...).failed(t, 500, api.CodeInternalError).Error)
	require.Contains(t, a.logs.String(), "the key set is not a JSON Web Key Set")
	require.Equal(t, 401, a.get("/sessions").status, "a caller without credentials gets that answer")
	require.NoError(t, os.Remove(file))
	later()
	expect(500, 500)
	write(authtest.KeySet(t, authtest.Public(second, "second", "")))
	later()
	expect(401, 200)

	// In place, with the same length.
	raw := authtest.KeySet(t, authtest.Public(first, "second", ""))
	require.NoError(t, os.WriteFile(file, raw, 0o600))
	require.NoError(t, os.Chtimes(file, now, now.Add(time.Minute)))
	later()
	expect(401, 401)

	// A clock that is set back does not stop it.
	write(authtest.KeySet(t, authtest.Public(first, "first", "")))
	now = authtest.Now.Add(-time.Hour)
	expect(200, 401)
}

// Anybody can send tokens while the keys can't be fetched: the log has one line for it.
func TestFailedFetchesAreLoggedOnce(t *testing.T) {
	p := authtest.NewProvider(t, nil)
	p.Serve(500, nil)
	j, err := auth.NewJWT(auth.JWTOptions{JWKSURL: p.URL, Issuer: "https://id.example", Audience: "helixd"})
	require.NoError(t, err)
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) { o.Auth, o.Identify = j.Authenticate, j.Identify })
	for range 20 {
		a.get("/sessions", "Authorization", "Bearer a.b.c").failed(t, 503, api.CodeUnavailable)
	}
	require.Equal(t, 1, strings.Count(a.logs.String(), "level=ERROR"), a.logs.String())
	require.Contains(t, a.logs.String(), "the key set can't be fetched: status 500")
}
