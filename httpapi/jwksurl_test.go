package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
)

// provider serves a key set.
type provider struct {
	*httptest.Server
	mu      sync.Mutex
	keys    []byte
	status  int
	fetches atomic.Int64
}

func newProvider(t *testing.T, keys []byte) *provider {
	t.Helper()
	p := &provider{keys: keys, status: 200}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.fetches.Add(1)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.status == 302 {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(p.status)
		_, _ = w.Write(p.keys)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *provider) serve(status int, keys []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status, p.keys = status, keys
}

// Keys from a URL are fetched when they are needed: seldom, again when a key is
// rotated in, and old ones count for a day while there are no newer ones.
func TestJWKSURL(t *testing.T) {
	one, two, stranger := newEd25519(t), newEd25519(t), newEd25519(t)
	p := newProvider(t, keySet(t, public(one, "1", "")))
	now := jwtNow
	j, err := auth.NewJWT(auth.JWTOptions{
		JWKSURL: p.URL + "/keys", Issuer: "https://id.example", Audience: "helixd", Now: func() time.Time { return now },
	})
	require.NoError(t, err)
	require.Zero(t, p.fetches.Load(), "nothing is fetched before it is needed")
	lasting := claims{"exp": jwtNow.Add(100 * time.Hour).Unix()}
	by := func(kid string) string {
		key := map[string]any{"1": one, "2": two}[kid]
		if key == nil {
			key = stranger
		}
		return "Bearer " + signed(t, jose.EdDSA, key, kid, goodClaims().with(lasting))
	}
	check := func(kid string, want error, fetches int64) {
		t.Helper()
		err := as(j.Authenticate, by(kid), "status", "s")
		if want == nil {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, want)
		}
		require.Equal(t, fetches, p.fetches.Load())
	}
	unknown := auth.ErrUnauthorized
	require.ErrorIs(t, as(j.Authenticate, "Bearer no-jwt", "status", "s"), unknown)
	require.Zero(t, p.fetches.Load())
	check("1", nil, 1)
	check("1", nil, 1)
	check("2", unknown, 1) // fetched a moment ago
	now = now.Add(10 * time.Second)
	check("2", unknown, 2)
	for range 20 { // unknown keys don't have it fetched each time
		check("3", unknown, 2)
	}
	p.serve(200, keySet(t, public(two, "2", "")))
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
		p.serve(bad.status, []byte(bad.keys))
		now = now.Add(15 * time.Minute)
		check("2", nil, 5+int64(i))
		check("2", nil, 5+int64(i)) // not tried again at once
	}
	now = now.Add(24 * time.Hour)
	err = as(j.Authenticate, by("2"), "status", "s")
	var refused *auth.Refusal
	require.ErrorAs(t, err, &refused)
	require.Equal(t, 503, refused.Status)
	require.NotErrorIs(t, err, unknown)
	p.serve(200, keySet(t, public(two, "2", "")))
	now = now.Add(10 * time.Second)
	require.NoError(t, as(j.Authenticate, by("2"), "status", "s"))
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
	key := newEd25519(t)
	p := newProvider(t, keySet(t, public(key, "1", "")))
	j, err := auth.NewJWT(auth.JWTOptions{JWKSURL: p.URL, Issuer: "https://id.example", Audience: "helixd", Now: func() time.Time { return jwtNow }})
	require.NoError(t, err)
	token := "Bearer " + signed(t, jose.EdDSA, key, "1", goodClaims())
	errs := make(chan error, 20)
	for range cap(errs) {
		go func() { errs <- as(j.Authenticate, token, "status", "s") }()
	}
	for range cap(errs) {
		require.NoError(t, <-errs)
	}
	require.EqualValues(t, 1, p.fetches.Load())
}

// Another one of the same URL goes on with the keys that were fetched, and with its
// own options.
func TestKeptKeys(t *testing.T) {
	key := newEd25519(t)
	p := newProvider(t, keySet(t, public(key, "1", "")))
	named := func(url, operations string) *auth.JWT {
		j, err := auth.NewJWT(auth.JWTOptions{
			JWKSURL: url, Issuer: "https://id.example", Audience: "helixd", OperationsClaim: operations, Now: func() time.Time { return jwtNow },
		})
		require.NoError(t, err)
		return j
	}
	token := "Bearer " + signed(t, jose.EdDSA, key, "1", goodClaims().with(claims{"few": []string{"status"}}))
	first := named(p.URL, "")
	first.KeepKeys(nil)
	require.NoError(t, as(first.Authenticate, token, "start", "s"))
	p.serve(500, nil)

	same := named(p.URL, "few")
	same.KeepKeys(first)
	require.NoError(t, as(same.Authenticate, token, "status", "s"))
	require.ErrorIs(t, as(same.Authenticate, token, "start", "s"), auth.ErrForbidden)
	require.EqualValues(t, 1, p.fetches.Load())

	other := named(p.URL+"/other", "")
	other.KeepKeys(first)
	var refused *auth.Refusal
	require.ErrorAs(t, as(other.Authenticate, token, "status", "s"), &refused)
	require.Equal(t, 503, refused.Status)
}

// Anybody can send tokens while the keys can't be fetched: the log has one line for it.
func TestFailedFetchesAreLoggedOnce(t *testing.T) {
	p := newProvider(t, nil)
	p.serve(500, nil)
	j, err := auth.NewJWT(auth.JWTOptions{JWKSURL: p.URL, Issuer: "https://id.example", Audience: "helixd"})
	require.NoError(t, err)
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) { o.Auth, o.Identify = j.Authenticate, j.Identify })
	for range 20 {
		a.get("/sessions", "Authorization", "Bearer a.b.c").failed(t, 503, api.CodeUnavailable)
	}
	require.Equal(t, 1, strings.Count(a.logs.String(), "level=ERROR"), a.logs.String())
	require.Contains(t, a.logs.String(), "the key set can't be fetched: status 500")
}
