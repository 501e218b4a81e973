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
		"without":     {"", "{issuer: x}", "helix.yaml:2: auth.jwt: needs a jwksFile or a jwksUrl"},
		"empty claim": {goodKeys, "{jwksFile: keys.json, sessionsClaim: ''}", "helix.yaml:2: auth.jwt.sessionsClaim: must not be empty"},
		"typo":        {"", "{jwks: x}", "helix.yaml:2: auth.jwt.jwks: " + unknown[JWT]()},
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

// A token's user and tenant are ids, and the right act-as has to be spelled out.
func TestTokenCallers(t *testing.T) {
	for text, want := range map[string]string{
		"{token: x, user: ada, tenant: red, operations: ['*', act-as]}": "",
		"{token: x, user: ''}":                                 "",
		"{token: x, user: \"a\\tb\"}":                          "auth.tokens[0].user: ",
		"{token: x, tenant: " + strings.Repeat("x", 257) + "}": "auth.tokens[0].tenant: must be at most 256 bytes, not 257",
		"{token: x, operations: [act-a]}":                      "auth.tokens[0].operations[0]: matches no operation",
		"{token: x, operations: ['act-*']}":                    "auth.tokens[0].operations[0]: matches no operation",
		"{token: x, user: ada}, {token: x, user: bob}":         "auth.tokens[1].token: is listed before with another user or tenant",
		"{token: x, user: ada}, {token: x, user: ada}":         "",
	} {
		_, err := loadText(t, "auth: {tokens: ["+text+"]}\n", nil)
		if want == "" {
			require.NoError(t, err, text)
			continue
		}
		require.ErrorContains(t, err, want, text)
	}
}

// Keys from a URL and the key of tickets are checked without being used.
func TestAuthURLAndKey(t *testing.T) {
	const jwt = "auth: {jwt: {issuer: i, audience: a, jwksUrl: "
	for text, want := range map[string]string{
		jwt + "'https://id.example/keys'}}":                      "",
		jwt + "'http://id.example/keys'}}":                       "auth.jwt.jwksUrl: the key set's URL must be https",
		jwt + "'https://me:hush@id.example/keys'}}":              "auth.jwt.jwksUrl: the key set's URL must be absolute, without user and password",
		jwt + "'https://id.example/keys', jwksFile: keys.json}}": "auth.jwt.jwksUrl: excludes jwksFile",
		"auth: {jwt: {jwksUrl: 'https://id.example/keys'}}":      "auth.jwt.jwksUrl: a key set from a URL needs an issuer and an audience",
		"auth: {ticketKey: " + strings.Repeat("k", 32) + "}":     "",
		"auth: {ticketKey: hush}":                                "auth.ticketKey: must have at least 32 bytes",
	} {
		c, err := loadText(t, text+"\n", nil)
		if want == "" {
			require.NoError(t, err, text)
			assert.Equal(t, strings.Contains(text, "jwt"), c.Auth.Configured())
			continue
		}
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "hush")
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

func TestExposure(t *testing.T) {
	c, err := loadText(t, "hosts: [helix.example, '*.helix.internal']\npublic: [/metrics, /readyz, /openapi.json]\n", nil)
	require.NoError(t, err)
	require.Equal(t, []string{"helix.example", "*.helix.internal"}, c.Hosts)
	_, err = loadText(t, "hosts:\n  - Helix.example\n  - 'helix.example:8080'\n  - '*'\npublic: [/sessions]\n", nil)
	const rule = `must be "*" or a host name in lower case without scheme and port, such as helix.example or *.helix.example`
	require.EqualError(t, err, "helix.yaml:2: hosts[0]: "+rule+"\nhelix.yaml:3: hosts[1]: "+rule+
		"\nhelix.yaml:4: hosts[2]: every web page could use this server: needs auth.tokens or auth.jwt"+
		"\nhelix.yaml:5: public[0]: must be one of /readyz, /metrics, /openapi.json")
	_, err = loadText(t, "public: [/metrics]\nmetrics: {requireAuth: true}\n", nil)
	require.EqualError(t, err, "helix.yaml:1: public: has /metrics, which metrics.requireAuth forbids")
	_, err = loadText(t, "auth: {tokens: [{token: x}]}\nhosts: ['*']\n", nil)
	require.NoError(t, err)
}
