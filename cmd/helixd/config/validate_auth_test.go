package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// goodKeys is a key set of one Ed25519 key (RFC 8037, A.2).
const goodKeys = `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k1","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`

func TestJWT(t *testing.T) {
	const key = "helix.yaml:2: auth.jwt.jwksFile: "
	for name, tc := range map[string]struct{ keys, jwt, want string }{
		"good":        {goodKeys, "{jwksFile: keys.json, issuer: 'https://id', audience: helixd}", ""},
		"no file":     {"", "{jwksFile: absent.json}", key + "the key set can't be read: no such file or directory"},
		"folder":      {"", "{jwksFile: .}", key + "the key set is not a file"},
		"device":      {"", "{jwksFile: /dev/zero}", key + "the key set is not a file"},
		"no JSON":     {"sk-secret", "{jwksFile: keys.json}", key + `the key set is not a JSON Web Key Set, {"keys": [...]}`},
		"no keys":     {`{"keys":[]}`, "{jwksFile: keys.json}", key + "the key set has no key that can check signatures"},
		"secret":      {`{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}`, "{jwksFile: keys.json}", key + "key 1 of the key set is secret: only public keys belong here"},
		"damaged":     {`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AA"}]}`, "{jwksFile: keys.json}", key + "key 1 of the key set is not valid: invalid Ed25519 public key"},
		"content":     {goodKeys, "{jwksFile: 'file:keys.json'}", key + "must be a file's path, not its content"},
		"without":     {"", "{issuer: x}", "helix.yaml:2: auth.jwt: needs a jwksFile"},
		"empty claim": {goodKeys, "{jwksFile: keys.json, sessionsClaim: ''}", "helix.yaml:2: auth.jwt.sessionsClaim: must not be empty"},
		"typo":        {"", "{jwks: x}", "helix.yaml:2: auth.jwt.jwks: unknown key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			writeFile(t, "keys.json", tc.keys)
			writeFile(t, "helix.yaml", "auth:\n  jwt: "+tc.jwt+"\n")
			c, err := Load("helix.yaml", nil)
			if tc.want != "" {
				require.ErrorContains(t, err, tc.want)
				require.NotContains(t, err.Error(), "\n")
				require.NotContains(t, err.Error(), "absent.json", "errors show no values")
				return
			}
			require.NoError(t, err)
			assert.True(t, c.Auth.Configured())
			assert.Equal(t, "helix_sessions", c.Auth.JWT.Options().SessionsClaim)
		})
	}
}

func TestJWTFromEnvironment(t *testing.T) {
	_, err := loadText(t, "", env{"HELIX_AUTH_JWT_JWKS_FILE": "absent.json"})
	assert.EqualError(t, err, "HELIX_AUTH_JWT_JWKS_FILE: auth.jwt.jwksFile: the key set can't be read: no such file or directory")
}

func TestOrigins(t *testing.T) {
	c, err := loadText(t, "cors: {origins: ['https://app.example', 'http://localhost:3000']}\n", nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"https://app.example", "http://localhost:3000"}, c.CORS.Origins)

	_, err = loadText(t, "cors:\n  origins:\n    - https://app.example/\n    - app.example\n", nil)
	require.Error(t, err)
	lines := strings.Split(err.Error(), "\n")
	require.Len(t, lines, 2)
	assert.Contains(t, lines[0], "helix.yaml:3: cors.origins[0]: must be")
	assert.Contains(t, lines[1], "helix.yaml:4: cors.origins[1]: must be")

	_, err = loadText(t, "auth: {allowUnauthenticated: true}\ncors: {origins: ['*']}\n", nil)
	assert.EqualError(t, err, "helix.yaml:2: cors.origins[0]: every web page could use this server: needs auth.tokens or auth.jwt")
	_, err = loadText(t, "auth: {tokens: [{token: x}]}\ncors: {origins: ['*']}\n", nil)
	assert.NoError(t, err)
}
