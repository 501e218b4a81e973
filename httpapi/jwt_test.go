package httpapi_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
)

// claims are a token's; the good ones may do everything for an hour.
type claims map[string]any

var jwtNow = time.Unix(1_800_000_000, 0)

func goodClaims() claims {
	return claims{
		"iss": "https://id.example", "aud": "helixd", "exp": jwtNow.Add(time.Hour).Unix(),
		"helix_sessions": []string{"*"}, "helix_operations": []string{"*"},
	}
}

// with returns the claims with some changed; nil takes one out.
func (c claims) with(changes claims) claims {
	c = maps.Clone(c)
	for name, v := range changes {
		if c[name] = v; v == nil {
			delete(c, name)
		}
	}
	return c
}

func public(private crypto.Signer, kid, alg string) jose.JSONWebKey {
	return jose.JSONWebKey{Key: private.Public(), KeyID: kid, Algorithm: alg}
}

func keySet(t *testing.T, keys ...jose.JSONWebKey) []byte {
	t.Helper()
	raw, err := json.Marshal(jose.JSONWebKeySet{Keys: keys})
	require.NoError(t, err)
	return raw
}

// signed returns a JWT. A kid of "" is left out.
func signed(t *testing.T, alg jose.SignatureAlgorithm, key any, kid string, c any, headers ...any) string {
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

// as asks an authenticator about a request with an Authorization header.
func as(authenticate auth.Authenticator, header string, op auth.Operation, session string) error {
	r := &http.Request{Header: http.Header{}}
	if header != "" {
		r.Header.Set("Authorization", header)
	}
	return authenticate(r, op, session)
}

func newEd25519(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	return key
}

func jwtAuth(t *testing.T, o auth.JWTOptions) auth.Authenticator {
	t.Helper()
	if o.Now == nil {
		o.Now = func() time.Time { return jwtNow }
	}
	authenticate, err := auth.NewJWT(o)
	require.NoError(t, err)
	return authenticate.Authenticate
}

// TestJWTAlgorithms: each key takes the algorithms of its type and no others.
func TestJWTAlgorithms(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	keys := map[string]crypto.Signer{"rsa": rsaKey, "ed": newEd25519(t), "ps only": rsaKey}
	for name, curve := range map[string]elliptic.Curve{"p256": elliptic.P256(), "p384": elliptic.P384(), "p521": elliptic.P521()} {
		keys[name], err = ecdsa.GenerateKey(curve, rand.Reader)
		require.NoError(t, err)
	}
	allowed := map[string][]jose.SignatureAlgorithm{
		"rsa":     {jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512},
		"ps only": {jose.PS256},
		"p256":    {jose.ES256}, "p384": {jose.ES384}, "p521": {jose.ES512}, "ed": {jose.EdDSA},
	}
	var set []jose.JSONWebKey
	for kid, key := range keys {
		set = append(set, public(key, kid, map[string]string{"ps only": "PS256"}[kid]))
	}
	authenticate := jwtAuth(t, auth.JWTOptions{JWKS: keySet(t, set...)})
	for signer, algorithms := range allowed {
		for _, alg := range algorithms {
			token := signed(t, alg, keys[signer], signer, goodClaims())
			require.NoError(t, as(authenticate, "Bearer "+token, "status", "s"), "%s %s", signer, alg)
			for other := range keys {
				err := as(authenticate, "Bearer "+signed(t, alg, keys[signer], other, goodClaims()), "status", "s")
				sameKey := other == signer || signer == "rsa" && other == "ps only" || signer == "ps only" && other == "rsa"
				if sameKey && slices.Contains(allowed[other], alg) {
					require.NoError(t, err, "%s signs as %s with %s", signer, other, alg)
				} else {
					require.ErrorIs(t, err, auth.ErrUnauthorized, "%s signs as %s with %s", signer, other, alg)
				}
			}
		}
	}

	// The public key is no secret: not one for HS256 either, in any form.
	der, err := x509.MarshalPKIXPublicKey(rsaKey.Public())
	require.NoError(t, err)
	jwk, err := public(rsaKey, "rsa", "").MarshalJSON()
	require.NoError(t, err)
	for _, secret := range [][]byte{der, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), jwk, rsaKey.N.Bytes()} {
		for _, alg := range []jose.SignatureAlgorithm{jose.HS256, jose.HS384, jose.HS512} {
			require.ErrorIs(t, as(authenticate, "Bearer "+signed(t, alg, secret, "rsa", goodClaims()), "status", "s"), auth.ErrUnauthorized)
		}
	}
}

// TestJWTForged: what is not signed by a key of the set, as it is, is refused.
func TestJWTForged(t *testing.T) {
	key, other := newEd25519(t), newEd25519(t)
	authenticate := jwtAuth(t, auth.JWTOptions{JWKS: keySet(t, public(key, "k", ""), public(other, "other", ""))})
	good := signed(t, jose.EdDSA, key, "k", goodClaims())
	require.NoError(t, as(authenticate, "Bearer "+good, "status", "s"))
	require.NoError(t, as(authenticate, "bearer  "+good+" ", "status", "s"))
	parts := strings.Split(good, ".")
	b64 := base64.RawURLEncoding.EncodeToString
	none := b64([]byte(`{"alg":"none","kid":"k"}`))
	attacker := newEd25519(t)
	for name, token := range map[string]string{
		"empty":            "",
		"word":             "word",
		"dots":             "..",
		"none":             none + "." + parts[1] + ".",
		"none, signed":     none + "." + parts[1] + "." + parts[2],
		"None":             b64([]byte(`{"alg":"None","kid":"k"}`)) + "." + parts[1] + ".",
		"no algorithm":     b64([]byte(`{"kid":"k"}`)) + "." + parts[1] + "." + parts[2],
		"no signature":     parts[0] + "." + parts[1] + ".",
		"other payload":    parts[0] + "." + b64([]byte(`{"exp":9999999999,"helix_sessions":["*"],"helix_operations":["*"]}`)) + "." + parts[2],
		"four parts":       good + ".x",
		"padded":           good + "=",
		"unknown kid":      signed(t, jose.EdDSA, key, "nobody", goodClaims()),
		"kid of another":   signed(t, jose.EdDSA, key, "other", goodClaims()),
		"no kid":           signed(t, jose.EdDSA, key, "", goodClaims()),
		"its own key":      signed(t, jose.EdDSA, attacker, "k", goodClaims(), "jwk", public(attacker, "k", "")),
		"its own key, new": signed(t, jose.EdDSA, attacker, "evil", goodClaims(), "jwk", public(attacker, "evil", "")),
		"its own URL":      signed(t, jose.EdDSA, attacker, "k", goodClaims(), "jku", "https://evil.example/jwks"),
		"critical":         signed(t, jose.EdDSA, key, "k", goodClaims(), "crit", []string{"b64"}, "b64", true),
		"no claims":        signed(t, jose.EdDSA, key, "k", "null"),
		"no object":        signed(t, jose.EdDSA, key, "k", `["*"]`),
		"claim twice":      signed(t, jose.EdDSA, key, "k", `{"exp":9999999999,"helix_sessions":["a"],"helix_sessions":["*"],"helix_operations":["*"]}`),
		"too long":         signed(t, jose.EdDSA, key, "k", goodClaims().with(claims{"x": strings.Repeat("x", 16<<10)})),
	} {
		require.ErrorIs(t, as(authenticate, "Bearer "+token, "status", "s"), auth.ErrUnauthorized, name)
		require.ErrorIs(t, as(authenticate, "Bearer "+token, "status", ""), auth.ErrUnauthorized, name)
	}
	require.ErrorIs(t, as(authenticate, "Basic "+good, "status", "s"), auth.ErrUnauthorized)
	require.ErrorIs(t, as(authenticate, good, "status", "s"), auth.ErrUnauthorized)
	r := &http.Request{Header: http.Header{"Authorization": {"Bearer " + good, "Bearer " + good}}}
	require.ErrorIs(t, authenticate(r, "status", "s"), auth.ErrUnauthorized, "who is meant?")

	// A key without an id is for tokens that name none.
	anonymous := jwtAuth(t, auth.JWTOptions{JWKS: keySet(t, public(key, "", ""))})
	require.NoError(t, as(anonymous, "Bearer "+signed(t, jose.EdDSA, key, "", goodClaims()), "status", "s"))
	require.ErrorIs(t, as(anonymous, "Bearer "+good, "status", "s"), auth.ErrUnauthorized)
}

func TestJWTClaims(t *testing.T) {
	key := newEd25519(t)
	authenticate := jwtAuth(t, auth.JWTOptions{
		JWKS: keySet(t, public(key, "k", "")), Issuer: "https://id.example", Audience: "helixd", Leeway: 10 * time.Second,
	})
	unknown, no := auth.ErrUnauthorized, auth.ErrForbidden
	at := func(d time.Duration) int64 { return jwtNow.Add(d).Unix() }
	for _, tc := range []struct {
		name    string
		changes claims
		op      auth.Operation
		session string
		want    error
	}{
		{"good", nil, "status", "s", nil},
		{"no exp", claims{"exp": nil}, "status", "s", unknown},
		{"exp null", claims{"exp": json.RawMessage("null")}, "status", "s", unknown},
		{"exp text", claims{"exp": "9999999999"}, "status", "s", unknown},
		{"expired", claims{"exp": at(-11 * time.Second)}, "status", "s", unknown},
		{"just expired", claims{"exp": at(-9 * time.Second)}, "status", "s", nil},
		{"not yet", claims{"nbf": at(11 * time.Second)}, "status", "s", unknown},
		{"nearly", claims{"nbf": at(9 * time.Second)}, "status", "s", nil},
		{"from the future", claims{"iat": at(time.Hour)}, "status", "s", unknown},
		{"other issuer", claims{"iss": "https://id.example/"}, "status", "s", unknown},
		{"no issuer", claims{"iss": nil}, "status", "s", unknown},
		{"other audience", claims{"aud": "helix"}, "status", "s", unknown},
		{"no audience", claims{"aud": nil}, "status", "s", unknown},
		{"among others", claims{"aud": []string{"x", "helixd"}}, "status", "s", nil},

		{"no sessions", claims{"helix_sessions": nil}, "status", "s", no},
		{"no sessions, none named", claims{"helix_sessions": nil}, "sessions", "", no},
		{"no operations", claims{"helix_operations": nil}, "status", "s", no},
		{"empty sessions", claims{"helix_sessions": []string{}}, "status", "", no},
		{"sessions as text", claims{"helix_sessions": "*"}, "status", "s", no},
		{"sessions of another kind", claims{"helix_sessions": []any{"*", 7}}, "status", "s", no},
		{"sessions as object", claims{"helix_sessions": claims{"*": true}}, "status", "s", no},
		{"sessions true", claims{"helix_sessions": true}, "status", "s", no},
		{"operations as text", claims{"helix_operations": "start status"}, "status", "s", nil},
		{"operations as text, others", claims{"helix_operations": "start statuses"}, "status", "s", no},
		{"operations of another kind", claims{"helix_operations": []any{"*", nil}}, "status", "s", no},
		{"glob", claims{"helix_sessions": []string{"team/*"}, "helix_operations": []string{"chat*"}}, "chat-stream", "team/a", nil},
		{"beside the glob", claims{"helix_sessions": []string{"team/*"}}, "status", "teams", no},
		{"exact", claims{"helix_sessions": []string{"s"}}, "status", "s2", no},
		{"other case", claims{"helix_sessions": nil, "Helix_Sessions": []string{"*"}}, "status", "s", no},
		{"other operation", claims{"helix_operations": []string{"status"}}, "erase", "s", no},
	} {
		token := signed(t, jose.EdDSA, key, "k", goodClaims().with(tc.changes))
		for range 2 { // a token that is known by now is judged as at first
			err := as(authenticate, "Bearer "+token, tc.op, tc.session)
			if tc.want == nil {
				require.NoError(t, err, tc.name)
			} else {
				require.ErrorIs(t, err, tc.want, tc.name)
			}
		}
	}

	// Neither is asked for by default, and claims may have other names.
	lax := jwtAuth(t, auth.JWTOptions{JWKS: keySet(t, public(key, "k", "")), SessionsClaim: "https://x/s", OperationsClaim: "scope"})
	token := signed(t, jose.EdDSA, key, "k", claims{"exp": at(time.Hour), "https://x/s": []string{"s"}, "scope": "status openid"})
	require.NoError(t, as(lax, "Bearer "+token, "status", "s"))
	require.ErrorIs(t, as(lax, "Bearer "+signed(t, jose.EdDSA, key, "k", goodClaims()), "status", "s"), no)
}

// TestJWTOverHTTP: tokens and JWTs side by side, and what they can't do.
func TestJWTOverHTTP(t *testing.T) {
	key := newEd25519(t)
	now := jwtNow
	byJWT := jwtAuth(t, auth.JWTOptions{JWKS: keySet(t, public(key, "k", "")), Now: func() time.Time { return now }, Leeway: -1})
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) {
		o.Auth = auth.AnyOf(auth.BearerTokens([]auth.Token{{Token: "t0ken", Operations: []string{"*"}, Sessions: []string{"mine"}}}), byJWT)
	})
	for _, id := range []string{"mine", "yours", "ours"} {
		a.append(id, created(id), ended(id, `1`))
	}
	bearer := func(token string) []string { return []string{"Authorization", "Bearer " + token} }
	token := signed(t, jose.EdDSA, key, "k", goodClaims().with(claims{"helix_sessions": []string{"yours"}}))

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

	now = jwtNow.Add(time.Hour + time.Second)
	a.get("/status?sessionId=yours", bearer(token)...).failed(t, 401, api.CodeUnauthorized)
	require.NotContains(t, a.logs.String(), "level=ERROR")
}
