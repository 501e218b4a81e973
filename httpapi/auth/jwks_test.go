package auth_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/auth/authtest"
)

// TestKeySets: which sets a server starts with.
func TestKeySets(t *testing.T) {
	key := authtest.NewEd25519(t)
	text := func(k jose.JSONWebKey) string {
		raw, err := k.MarshalJSON()
		require.NoError(t, err)
		return string(raw)
	}
	good := text(authtest.Public(key, "k", ""))
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Setenv("GODEBUG", "rsa1024min=0")
		small, err = rsa.GenerateKey(rand.Reader, 1024)
	}
	require.NoError(t, err)
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	swapped := strings.NewReplacer(`"x":`, `"y":`, `"y":`, `"x":`).Replace(text(authtest.Public(ec, "k", "")))
	for name, tc := range map[string]struct{ keys, want string }{
		"good":            {good, ""},
		"ignored":         {`{"kty":"oct-like"},{"kty":"EC","crv":"secp256k1","x":"AA","y":"AA"},{"kty":"OKP","crv":"X25519","x":"AA"},` + good, ""},
		"for encryption":  {strings.Replace(good, `{`, `{"use":"enc",`, 1), "no key that can check signatures"},
		"to sign with":    {strings.Replace(good, `{`, `{"key_ops":["sign"],`, 1), "no key that can check signatures"},
		"to check with":   {strings.Replace(good, `{`, `{"use":"sig","key_ops":["verify"],`, 1), ""},
		"other algorithm": {text(authtest.Public(key, "k", "RS256")), "no key that can check signatures"},
		"private":         {good + "," + text(jose.JSONWebKey{Key: key, KeyID: "p"}), "key 2 of the key set is secret"},
		"symmetric":       {text(jose.JSONWebKey{Key: []byte(strings.Repeat("s", 64)), KeyID: "k"}), "key 1 of the key set is secret"},
		"short":           {text(authtest.Public(small, "k", "")), "has fewer than 2048 bits"},
		"off the curve":   {swapped, "key 1 of the key set is not valid"},
		"no key":          {"7", "key 1 of the key set is not a JSON Web Key"},
		"none":            {"", "no key that can check signatures"},
	} {
		authenticate, err := auth.NewJWT(auth.JWTOptions{JWKS: []byte(`{"keys":[` + tc.keys + `]}`)})
		if tc.want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, tc.want, name)
		require.Nil(t, authenticate, name)
	}
	for _, set := range []string{"", "null", "[]", "{}", `{"keys":null}`, `{"keys":{}}`, good, "not JSON"} {
		_, err := auth.NewJWT(auth.JWTOptions{JWKS: []byte(set)})
		require.ErrorContains(t, err, "not a JSON Web Key Set", set)
	}
	_, err = auth.NewJWT(auth.JWTOptions{})
	require.ErrorContains(t, err, "must be given once")
	_, err = auth.NewJWT(auth.JWTOptions{JWKS: authtest.KeySet(t, authtest.Public(key, "k", "")), JWKSFile: "x"})
	require.ErrorContains(t, err, "must be given once")
	_, err = auth.NewJWT(auth.JWTOptions{JWKSFile: filepath.Join(t.TempDir(), "absent-file")})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NotContains(t, err.Error(), "absent-file")
	large := filepath.Join(t.TempDir(), "large")
	require.NoError(t, os.WriteFile(large, make([]byte, 1<<20+1), 0o600))
	_, err = auth.NewJWT(auth.JWTOptions{JWKSFile: large})
	require.ErrorContains(t, err, "more than 1048576 bytes")
}

// FuzzJWT: whatever comes, nobody gets in without a signature.
func FuzzJWT(f *testing.F) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(f, err)
	raw, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{authtest.Public(key, "k", "")}})
	require.NoError(f, err)
	authenticate, err := auth.NewJWT(auth.JWTOptions{JWKS: raw})
	require.NoError(f, err)
	f.Add("a.b.c")
	f.Add("eyJhbGciOiJub25lIiwia2lkIjoiayJ9.e30.")
	f.Add("eyJhbGciOiJFUzI1NiIsImtpZCI6ImsifQ.eyJleHAiOjk5OTk5OTk5OTl9.AAAA")
	f.Fuzz(func(t *testing.T, token string) {
		require.ErrorIs(t, authtest.As(authenticate.Authenticate, "Bearer "+token, "status", "s"), auth.ErrUnauthorized)
	})
}
