// Package authtest makes keys, tokens and providers of keys, for tests.
package authtest

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/httpapi/auth"
)

// Claims are a token's claims.
type Claims map[string]any

// Now is when the good claims are valid.
var Now = time.Unix(1_800_000_000, 0)

// GoodClaims returns claims that may do everything for an hour after [Now].
func GoodClaims() Claims {
	return Claims{
		"iss": "https://id.example", "aud": "helixd", "exp": Now.Add(time.Hour).Unix(),
		"helix_sessions": []string{"*"}, "helix_operations": []string{"*"},
	}
}

// With returns the claims with some changed; nil takes one out.
func (c Claims) With(changes Claims) Claims {
	c = maps.Clone(c)
	for name, v := range changes {
		if c[name] = v; v == nil {
			delete(c, name)
		}
	}
	return c
}

// Public returns the public key of a private one.
func Public(private crypto.Signer, kid, alg string) jose.JSONWebKey {
	return jose.JSONWebKey{Key: private.Public(), KeyID: kid, Algorithm: alg}
}

// KeySet returns a JSON Web Key Set.
func KeySet(t *testing.T, keys ...jose.JSONWebKey) []byte {
	t.Helper()
	raw, err := json.Marshal(jose.JSONWebKeySet{Keys: keys})
	require.NoError(t, err)
	return raw
}

// Signed returns a JWT. A kid of "" is left out.
func Signed(t *testing.T, alg jose.SignatureAlgorithm, key any, kid string, c any, headers ...any) string {
	t.Helper()
	opts := new(jose.SignerOptions).WithType("JWT")
	if kid != "" {
		opts = opts.WithHeader("kid", kid)
	}
	for i := 0; i < len(headers); i += 2 {
		opts = opts.WithHeader(jose.HeaderKey(headers[i].(string)), headers[i+1])
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, opts)
	require.NoError(t, err)
	payload, ok := c.(string)
	if !ok {
		raw, err := json.Marshal(c)
		require.NoError(t, err)
		payload = string(raw)
	}
	object, err := signer.Sign([]byte(payload))
	require.NoError(t, err)
	token, err := object.CompactSerialize()
	require.NoError(t, err)
	return token
}

// As asks an authenticator about a request with an Authorization header.
func As(authenticate auth.Authenticator, header string, op auth.Operation, session string) error {
	r := &http.Request{Header: http.Header{}}
	if header != "" {
		r.Header.Set("Authorization", header)
	}
	return authenticate(r, op, session)
}

// NewEd25519 returns a private key.
func NewEd25519(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	return key
}

// JWT returns an authenticator, for which it is [Now] unless the options say otherwise.
func JWT(t *testing.T, o auth.JWTOptions) auth.Authenticator {
	t.Helper()
	if o.Now == nil {
		o.Now = func() time.Time { return Now }
	}
	authenticate, err := auth.NewJWT(o)
	require.NoError(t, err)
	return authenticate.Authenticate
}

// Provider serves a key set.
type Provider struct {
	*httptest.Server
	Fetches atomic.Int64

	mu     sync.Mutex
	keys   []byte
	status int
}

// NewProvider starts a provider of a key set.
func NewProvider(t *testing.T, keys []byte) *Provider {
	t.Helper()
	p := &Provider{keys: keys, status: 200}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.Fetches.Add(1)
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

// Serve has the provider answer with a status and a key set from now on.
func (p *Provider) Serve(status int, keys []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status, p.keys = status, keys
}

// Everybody lets a caller, whose token is its name, do everything but one operation.
type Everybody struct{ refused atomic.Value }

// Refuse changes the operation that nobody may do; "" is none.
func (e *Everybody) Refuse(op auth.Operation) { e.refused.Store(op) }

// Auth is a server's way to ask what a caller may do.
func (e *Everybody) Auth(r *http.Request, op auth.Operation, _ string) error {
	switch {
	case auth.BearerOf(r) == "":
		return auth.ErrUnauthorized
	case op == e.refused.Load():
		return auth.ErrForbidden
	}
	return nil
}

// Identify is a server's way to ask who a caller is.
func (e *Everybody) Identify(r *http.Request) (auth.Caller, error) {
	user := auth.BearerOf(r)
	return auth.Caller{Name: user, User: user}, nil
}
