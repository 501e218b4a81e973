package auth_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/auth/authtest"
)

// Keys from a URL are fetched when they are needed: seldom, again when a key is
// rotated in, and old ones count for a day while there are no newer ones.
func TestJWKSURL(t *testing.T) {
	one, two, stranger := authtest.NewEd25519(t), authtest.NewEd25519(t), authtest.NewEd25519(t)
	p := authtest.NewProvider(t, authtest.KeySet(t, authtest.Public(one, "1", "")))
	now := authtest.Now
	j, err := auth.NewJWT(auth.JWTOptions{
		JWKSURL: p.URL + "/keys", Issuer: "https://id.example", Audience: "helixd", Now: func() time.Time { return now },
	})
	require.NoError(t, err)
	require.Zero(t, p.Fetches.Load(), "nothing is fetched before it is needed")
	lasting := authtest.Claims{"exp": authtest.Now.Add(100 * time.Hour).Unix()}
	by := func(kid string) string {
		key := map[string]any{"1": one, "2": two}[kid]
		if key == nil {
			key = stranger
		}
		return "Bearer " + authtest.Signed(t, jose.EdDSA, key, kid, authtest.GoodClaims().With(lasting))
	}
	check := func(kid string, want error, fetches int64) {
		t.Helper()
		err := authtest.As(j.Authenticate, by(kid), "status", "s")
		if want == nil {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, want)
		}
		require.Equal(t, fetches, p.Fetches.Load())
	}
	unknown := auth.ErrUnauthorized
	require.ErrorIs(t, authtest.As(j.Authenticate, "Bearer no-jwt", "status", "s"), unknown)
	require.Zero(t, p.Fetches.Load())
	check("1", nil, 1)
	check("1", nil, 1)
	check("2", unknown, 1) // fetched a moment ago
	now = now.Add(10 * time.Second)
	check("2", unknown, 2)
	for range 20 { // unknown keys don't have it fetched each time
		check("3", unknown, 2)
	}
	p.Serve(200, authtest.KeySet(t, authtest.Public(two, "2", "")))
	now = now.Add(10 * time.Second)
	check("1", nil, 2) // as long as the set is fresh
	check("2", nil, 3)
	check("1", unknown, 3) // rotated out

	now = now.Add(15 * time.Minute)
	check("2", nil, 4)
	for i, bad := range []struct {
		status int
		keys   string
	}{{500, ""}, {200, "no JSON"}, {200, strings.Repeat(" ", 1<<20+1)}, {302, ""}} {
		p.Serve(bad.status, []byte(bad.keys))
		now = now.Add(15 * time.Minute)
		check("2", nil, 5+int64(i))
		check("2", nil, 5+int64(i)) // not tried again at once
	}
	now = now.Add(24 * time.Hour)
	err = authtest.As(j.Authenticate, by("2"), "status", "s")
	var refused *auth.Refusal
	require.ErrorAs(t, err, &refused)
	require.Equal(t, 503, refused.Status)
	require.NotErrorIs(t, err, unknown)
	p.Serve(200, authtest.KeySet(t, authtest.Public(two, "2", "")))
	now = now.Add(10 * time.Second)
	require.NoError(t, authtest.As(j.Authenticate, by("2"), "status", "s"))
}

// A URL from which anybody could have keys come is refused.
func TestJWKSURLOptions(t *testing.T) {
	for at, want := range map[string]string{
		"https://id.example/keys": "", "http://127.0.0.1:1/keys": "", "http://localhost/keys": "", "http://[::1]:1/": "",
		"http://id.example/keys": "must be https", "ftp://localhost/keys": "must be https", "/keys": "must be absolute", "https://": "must be absolute",
		"https://me:secret@id.example/keys": "without user and password", "https://id.example/keys#x": "must be absolute",
	} {
		_, err := auth.NewJWT(auth.JWTOptions{JWKSURL: at, Issuer: "i", Audience: "a"})
		if want == "" {
			require.NoError(t, err, at)
			continue
		}
		require.ErrorContains(t, err, want, at)
		require.NotContains(t, err.Error(), "secret")
	}
	_, err := auth.NewJWT(auth.JWTOptions{JWKSURL: "https://id.example/keys", Audience: "a"})
	require.ErrorContains(t, err, "needs an issuer and an audience")
	_, err = auth.NewJWT(auth.JWTOptions{JWKSURL: "https://id.example/keys", Issuer: "i"})
	require.ErrorContains(t, err, "needs an issuer and an audience")
}

// Many tokens that come at once have the keys fetched once, and all wait for it.
func TestJWKSURLIsFetchedOnce(t *testing.T) {
	key := authtest.NewEd25519(t)
	p := authtest.NewProvider(t, authtest.KeySet(t, authtest.Public(key, "1", "")))
	j, err := auth.NewJWT(auth.JWTOptions{JWKSURL: p.URL, Issuer: "https://id.example", Audience: "helixd", Now: func() time.Time { return authtest.Now }})
	require.NoError(t, err)
	token := "Bearer " + authtest.Signed(t, jose.EdDSA, key, "1", authtest.GoodClaims())
	errs := make(chan error, 20)
	for range cap(errs) {
		go func() { errs <- authtest.As(j.Authenticate, token, "status", "s") }()
	}
	for range cap(errs) {
		require.NoError(t, <-errs)
	}
	require.EqualValues(t, 1, p.Fetches.Load())
}

// Another one of the same URL continues with the keys that were fetched, and with its
// own options.
func TestKeptKeys(t *testing.T) {
	key := authtest.NewEd25519(t)
	p := authtest.NewProvider(t, authtest.KeySet(t, authtest.Public(key, "1", "")))
	named := func(url, operations string) *auth.JWT {
		j, err := auth.NewJWT(auth.JWTOptions{
			JWKSURL: url, Issuer: "https://id.example", Audience: "helixd", OperationsClaim: operations, Now: func() time.Time { return authtest.Now },
		})
		require.NoError(t, err)
		return j
	}
	token := "Bearer " + authtest.Signed(t, jose.EdDSA, key, "1", authtest.GoodClaims().With(authtest.Claims{"few": []string{"status"}}))
	first := named(p.URL, "")
	first.KeepKeys(nil)
	require.NoError(t, authtest.As(first.Authenticate, token, "start", "s"))
	p.Serve(500, nil)

	same := named(p.URL, "few")
	same.KeepKeys(first)
	require.NoError(t, authtest.As(same.Authenticate, token, "status", "s"))
	require.ErrorIs(t, authtest.As(same.Authenticate, token, "start", "s"), auth.ErrForbidden)
	require.EqualValues(t, 1, p.Fetches.Load())

	other := named(p.URL+"/other", "")
	other.KeepKeys(first)
	var refused *auth.Refusal
	require.ErrorAs(t, authtest.As(other.Authenticate, token, "status", "s"), &refused)
	require.Equal(t, 503, refused.Status)
}
