package config

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEnvName(t *testing.T) {
	for key, want := range map[string]string{
		"dataDir":                   "HELIX_DATA_DIR",
		"nats.url":                  "HELIX_NATS_URL",
		"nats.tls.ca":               "HELIX_NATS_TLS_CA",
		"auth.allowUnauthenticated": "HELIX_AUTH_ALLOW_UNAUTHENTICATED",
		"auth.jwt.jwksFile":         "HELIX_AUTH_JWT_JWKS_FILE",
		"chat.defaultAgent":         "HELIX_CHAT_DEFAULT_AGENT",
	} {
		assert.Equal(t, want, envName(key))
		assert.Contains(t, leaves(), key)
	}
}

func leaves() (keys []string) {
	eachLeaf(reflect.ValueOf(Default()).Elem(), "", func(path string, _ reflect.Value) {
		keys = append(keys, path)
	})
	return keys
}

// Every leaf has its own variable, which sets it and nothing else.
func TestEveryLeaf(t *testing.T) {
	names := map[string]string{}
	for _, key := range leaves() {
		name := envName(key)
		require.Empty(t, names[name], "%s and %s share a variable", key, names[name])
		names[name] = key

		c, want := Default(), Default()
		var text string
		eachLeaf(reflect.ValueOf(want).Elem(), "", func(path string, v reflect.Value) {
			if path != key {
				return
			}
			switch {
			case v.Kind() == reflect.Bool && v.Bool():
				text = "false"
			case v.Kind() == reflect.Bool:
				text = "true"
			case v.Type() == durationType:
				text = "7s"
			default:
				text = "5"
			}
			require.True(t, setText(v, text))
		})
		require.Empty(t, c.setEnv(env{name: text}.lookup))
		assert.Equal(t, origin{name: name}, c.origins[key])
		c.origins = nil
		assert.Equal(t, want, c, key)
		assert.NotEqual(t, Default(), c, key)
	}
	assert.Len(t, names, 100)
}

func TestListsFromTheEnvironment(t *testing.T) {
	c, err := Load("", env{"HELIX_CORS_ORIGINS": "http://localhost:3000, https://app.example"}.lookup)
	require.NoError(t, err)
	assert.Equal(t, []string{"http://localhost:3000", "https://app.example"}, c.CORS.Origins)
}

func TestPrecedence(t *testing.T) {
	c, err := loadText(t, "listen: file:1\ndataDir: from-file\n", env{"HELIX_LISTEN": "env:1", "HELIX_NO_SUCH_KEY": "x"})
	require.EqualError(t, err, "helix.yaml:1: listen: cannot read file 1: no such file or directory")
	require.Nil(t, c)

	c, err = loadText(t, "listen: f:1\ndataDir: from-file\n", env{"HELIX_LISTEN": "e:1", "HELIX_NO_SUCH_KEY": "x"})
	require.NoError(t, err)
	assert.Equal(t, "e:1", c.Listen)
	assert.Equal(t, "from-file", c.DataDir)
	assert.Equal(t, "fsync", c.Durability)
	require.NoError(t, c.SetFrom("", "listen", "flag:1"))
	assert.Equal(t, "flag:1", c.Listen)
	assert.NoError(t, c.Validate())
}

func TestBadEnvironment(t *testing.T) {
	_, err := Load("", env{
		"HELIX_NATS_REPLICAS": "sk-secret", "HELIX_LISTEN": "", "HELIX_AUTH_ALLOW_UNAUTHENTICATED": "perhaps",
		"HELIX_NATS_PASSWORD": "env:NOT_A_REFERENCE",
	}.lookup)
	assert.EqualError(t, err, "HELIX_NATS_REPLICAS: nats.replicas: must be an integer\n"+
		"HELIX_AUTH_ALLOW_UNAUTHENTICATED: auth.allowUnauthenticated: must be true or false\n"+
		"HELIX_LISTEN: listen: must be host:port")
}

func TestSet(t *testing.T) {
	c := Default()
	require.NoError(t, c.SetFrom("", "auth.allowUnauthenticated", "true"))
	require.NoError(t, c.SetFrom("", "nats.password", "pw"))
	assert.True(t, c.Auth.AllowUnauthenticated)
	assert.Equal(t, "pw", c.NATS.Password.Reveal())

	for _, tt := range []struct{ key, value, want string }{
		{"listen", "x", "--flag: listen: must be host:port"},
		{"nats.replicas", "x", "--flag: nats.replicas: must be an integer"},
		{"nats.replicas", "2", "--flag: nats.replicas: must be 1, 3 or 5"},
		{"nats.cluster.listen", "h", "--flag: nats.cluster.listen: must be host:port, the port not 0"},
		{"auth.tokens", "x", "--flag: auth.tokens: unknown key"},
		{"nope", "x", "--flag: nope: unknown key"},
	} {
		before := *c
		assert.EqualError(t, c.SetFrom("--flag", tt.key, tt.value), tt.want)
		assert.Equal(t, before, *c)
	}
	assert.EqualError(t, c.SetFrom("", "listen", "x"), "listen: must be host:port")

	// What needs another key waits for Validate.
	require.NoError(t, c.SetFrom("--cert", "nats.tls.cert", "c.pem"))
	assert.Error(t, c.Validate())
	require.NoError(t, c.SetFrom("--key", "nats.tls.key", "k.pem"))
	assert.NoError(t, c.Validate())
	assert.NoError(t, (&Config{}).SetFrom("", "dataDir", "x"))
	assert.Error(t, (&Config{}).SetFrom("", "nats.replicas", "x"))
}

// `dev` adds its agents after Load.
func TestDefaultAgentWithoutFile(t *testing.T) {
	c, err := Load("", env{"HELIX_CHAT_DEFAULT_AGENT": "demo"}.lookup)
	require.NoError(t, err)
	a := Agent{MaxSteps: DefaultMaxSteps, Model: Model{Provider: ProviderScripted, Script: []Turn{{Text: "Hi."}}}}
	c.Agents = map[string]Agent{"other": a}
	assert.EqualError(t, c.Validate(), "HELIX_CHAT_DEFAULT_AGENT: chat.defaultAgent: must be one of the agents: other")
	c.Agents["demo"] = a
	assert.NoError(t, c.Validate())
}
