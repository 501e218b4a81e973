package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDiffering(t *testing.T) {
	const text = "listen: a:1\nauth: {tokens: [{token: x}]}\nagents: {a: {model: {provider: openai, name: m, apiKey: k}}}\n"
	a, err := loadText(t, text, nil)
	require.NoError(t, err)
	b, err := loadText(t, text, nil)
	require.NoError(t, err)
	assert.Empty(t, a.Differing(b))
	b.Listen, b.NATS.TLS.CA, b.CORS.Origins = "b:1", "ca.pem", []string{}
	b.Auth.Tokens[0].Token = NewSecret("y")
	other := b.Agents["a"]
	other.Model.APIKey = NewSecret("l")
	b.Agents["a"] = other
	assert.Equal(t, []string{"listen", "nats.tls.ca", "auth.tokens", "agents"}, a.Differing(b))
}
