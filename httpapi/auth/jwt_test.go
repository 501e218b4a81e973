package auth_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/auth/authtest"
)

// TestJWTAlgorithms: each key takes the algorithms of its type and no others.
func TestJWTAlgorithms(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	keys := map[string]crypto.Signer{"rsa": rsaKey, "ed": authtest.NewEd25519(t), "ps only": rsaKey}
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
		set = append(set, authtest.Public(key, kid, map[string]string{"ps only": "PS256"}[kid]))
	}
	authenticate := authtest.JWT(t, auth.JWTOptions{JWKS: authtest.KeySet(t, set...)})
	for signer, algorithms := range allowed {
		for _, alg := range algorithms {
			token := authtest.Signed(t, alg, keys[signer], signer, authtest.GoodClaims())
			require.NoError(t, authtest.As(authenticate, "Bearer "+token, "status", "s"), "%s %s", signer, alg)
			for other := range keys {
				err := authtest.As(authenticate, "Bearer "+authtest.Signed(t, alg, keys[signer], other, authtest.GoodClaims()), "status", "s")
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
	jwk, err := authtest.Public(rsaKey, "rsa", "").MarshalJSON()
	require.NoError(t, err)
	for _, secret := range [][]byte{der, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), jwk, rsaKey.N.Bytes()} {
		for _, alg := range []jose.SignatureAlgorithm{jose.HS256, jose.HS384, jose.HS512} {
			require.ErrorIs(t, authtest.As(authenticate, "Bearer "+authtest.Signed(t, alg, secret, "rsa", authtest.GoodClaims()), "status", "s"), auth.ErrUnauthorized)
		}
	}
}

// TestJWTForged: what is not signed by a key of the set, as it is, is refused.
func TestJWTForged(t *testing.T) {
	key, other := authtest.NewEd25519(t), authtest.NewEd25519(t)
	authenticate := authtest.JWT(t, auth.JWTOptions{JWKS: authtest.KeySet(t, authtest.Public(key, "k", ""), authtest.Public(other, "other", ""))})
	good := authtest.Signed(t, jose.EdDSA, key, "k", authtest.GoodClaims())
	require.NoError(t, authtest.As(authenticate, "Bearer "+good, "status", "s"))
	require.NoError(t, authtest.As(authenticate, "bearer  "+good+" ", "status", "s"))
	parts := strings.Split(good, ".")
	b64 := base64.RawURLEncoding.EncodeToString
	none := b64([]byte(`{"alg":"none","kid":"k"}`))
	attacker := authtest.NewEd25519(t)
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
		"unknown kid":      authtest.Signed(t, jose.EdDSA, key, "nobody", authtest.GoodClaims()),
		"kid of another":   authtest.Signed(t, jose.EdDSA, key, "other", authtest.GoodClaims()),
		"no kid":           authtest.Signed(t, jose.EdDSA, key, "", authtest.GoodClaims()),
		"its own key":      authtest.Signed(t, jose.EdDSA, attacker, "k", authtest.GoodClaims(), "jwk", authtest.Public(attacker, "k", "")),
		"its own key, new": authtest.Signed(t, jose.EdDSA, attacker, "evil", authtest.GoodClaims(), "jwk", authtest.Public(attacker, "evil", "")),
		"its own URL":      authtest.Signed(t, jose.EdDSA, attacker, "k", authtest.GoodClaims(), "jku", "https://evil.example/jwks"),
		"critical":         authtest.Signed(t, jose.EdDSA, key, "k", authtest.GoodClaims(), "crit", []string{"b64"}, "b64", true),
		"no claims":        authtest.Signed(t, jose.EdDSA, key, "k", "null"),
		"no object":        authtest.Signed(t, jose.EdDSA, key, "k", `["*"]`),
		"claim twice":      authtest.Signed(t, jose.EdDSA, key, "k", `{"exp":9999999999,"helix_sessions":["a"],"helix_sessions":["*"],"helix_operations":["*"]}`),
		"too long":         authtest.Signed(t, jose.EdDSA, key, "k", authtest.GoodClaims().With(authtest.Claims{"x": strings.Repeat("x", 16<<10)})),
	} {
		require.ErrorIs(t, authtest.As(authenticate, "Bearer "+token, "status", "s"), auth.ErrUnauthorized, name)
		require.ErrorIs(t, authtest.As(authenticate, "Bearer "+token, "status", ""), auth.ErrUnauthorized, name)
	}
	require.ErrorIs(t, authtest.As(authenticate, "Basic "+good, "status", "s"), auth.ErrUnauthorized)
	require.ErrorIs(t, authtest.As(authenticate, good, "status", "s"), auth.ErrUnauthorized)
	r := &http.Request{Header: http.Header{"Authorization": {"Bearer " + good, "Bearer " + good}}}
	require.ErrorIs(t, authenticate(r, "status", "s"), auth.ErrUnauthorized, "who is meant?")

	// A key without an id is for tokens that name none.
	anonymous := authtest.JWT(t, auth.JWTOptions{JWKS: authtest.KeySet(t, authtest.Public(key, "", ""))})
	require.NoError(t, authtest.As(anonymous, "Bearer "+authtest.Signed(t, jose.EdDSA, key, "", authtest.GoodClaims()), "status", "s"))
	require.ErrorIs(t, authtest.As(anonymous, "Bearer "+good, "status", "s"), auth.ErrUnauthorized)
}

func TestJWTClaims(t *testing.T) {
	key := authtest.NewEd25519(t)
	authenticate := authtest.JWT(t, auth.JWTOptions{
		JWKS: authtest.KeySet(t, authtest.Public(key, "k", "")), Issuer: "https://id.example", Audience: "helixd", Leeway: 10 * time.Second,
	})
	unknown, no := auth.ErrUnauthorized, auth.ErrForbidden
	at := func(d time.Duration) int64 { return authtest.Now.Add(d).Unix() }
	for _, tc := range []struct {
		name    string
		changes authtest.Claims
		op      auth.Operation
		session string
		want    error
	}{
		{"good", nil, "status", "s", nil},
		{"no exp", authtest.Claims{"exp": nil}, "status", "s", unknown},
		{"exp null", authtest.Claims{"exp": json.RawMessage("null")}, "status", "s", unknown},
		{"exp text", authtest.Claims{"exp": "9999999999"}, "status", "s", unknown},
		{"expired", authtest.Claims{"exp": at(-11 * time.Second)}, "status", "s", unknown},
		{"just expired", authtest.Claims{"exp": at(-9 * time.Second)}, "status", "s", nil},
		{"not yet", authtest.Claims{"nbf": at(11 * time.Second)}, "status", "s", unknown},
		{"nearly", authtest.Claims{"nbf": at(9 * time.Second)}, "status", "s", nil},
		{"from the future", authtest.Claims{"iat": at(time.Hour)}, "status", "s", unknown},
		{"other issuer", authtest.Claims{"iss": "https://id.example/"}, "status", "s", unknown},
		{"no issuer", authtest.Claims{"iss": nil}, "status", "s", unknown},
		{"other audience", authtest.Claims{"aud": "helix"}, "status", "s", unknown},
		{"no audience", authtest.Claims{"aud": nil}, "status", "s", unknown},
		{"among others", authtest.Claims{"aud": []string{"x", "helixd"}}, "status", "s", nil},

		{"no sessions", authtest.Claims{"helix_sessions": nil}, "status", "s", no},
		{"no sessions, none named", authtest.Claims{"helix_sessions": nil}, "sessions", "", no},
		{"no operations", authtest.Claims{"helix_operations": nil}, "status", "s", no},
		{"empty sessions", authtest.Claims{"helix_sessions": []string{}}, "status", "", no},
		{"sessions as text", authtest.Claims{"helix_sessions": "*"}, "status", "s", no},
		{"sessions of another kind", authtest.Claims{"helix_sessions": []any{"*", 7}}, "status", "s", no},
		{"sessions as object", authtest.Claims{"helix_sessions": authtest.Claims{"*": true}}, "status", "s", no},
		{"sessions true", authtest.Claims{"helix_sessions": true}, "status", "s", no},
		{"operations as text", authtest.Claims{"helix_operations": "start status"}, "status", "s", nil},
		{"operations as text, others", authtest.Claims{"helix_operations": "start statuses"}, "status", "s", no},
		{"operations of another kind", authtest.Claims{"helix_operations": []any{"*", nil}}, "status", "s", no},
		{"glob", authtest.Claims{"helix_sessions": []string{"team/*"}, "helix_operations": []string{"chat*"}}, "chat-stream", "team/a", nil},
		{"beside the glob", authtest.Claims{"helix_sessions": []string{"team/*"}}, "status", "teams", no},
		{"exact", authtest.Claims{"helix_sessions": []string{"s"}}, "status", "s2", no},
		{"other case", authtest.Claims{"helix_sessions": nil, "Helix_Sessions": []string{"*"}}, "status", "s", no},
		{"other operation", authtest.Claims{"helix_operations": []string{"status"}}, "erase", "s", no},
	} {
		token := authtest.Signed(t, jose.EdDSA, key, "k", authtest.GoodClaims().With(tc.changes))
		for range 2 { // a token that is known by now is judged as at first
			err := authtest.As(authenticate, "Bearer "+token, tc.op, tc.session)
			if tc.want == nil {
				require.NoError(t, err, tc.name)
			} else {
				require.ErrorIs(t, err, tc.want, tc.name)
			}
		}
	}

	// Neither is asked for by default, and claims may have other names.
	lax := authtest.JWT(t, auth.JWTOptions{JWKS: authtest.KeySet(t, authtest.Public(key, "k", "")), SessionsClaim: "https://x/s", OperationsClaim: "scope"})
	token := authtest.Signed(t, jose.EdDSA, key, "k", authtest.Claims{"exp": at(time.Hour), "https://x/s": []string{"s"}, "scope": "status openid"})
	require.NoError(t, authtest.As(lax, "Bearer "+token, "status", "s"))
	require.ErrorIs(t, authtest.As(lax, "Bearer "+authtest.Signed(t, jose.EdDSA, key, "k", authtest.GoodClaims()), "status", "s"), no)
}
