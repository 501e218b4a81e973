package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReferences(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "etc/prompt.txt", "Be kind.\nBe brief.\n\n")
	writeFile(t, "etc/token", "t0ken\r\n")
	writeFile(t, "etc/helix.yaml", `
nats: {credentials: file:creds, partitions: env:PARTITIONS}
auth:
  allowUnauthenticated: env:OPEN
  tokens: [{token: file:token, operations: ["env:OPERATION"]}]
agents:
  a:
    systemPrompt: file:prompt.txt
    model: {provider: openai, name: env:MODEL, temperature: env:HEAT}
    tools: {t: {http: {url: "http://h", headers: {A: env:EMPTY}}, timeout: env:TIMEOUT, inputSchema: {type: object, const: env:X}}}
`)
	writeFile(t, "etc/creds", "-----BEGIN NATS USER JWT-----\n")
	c, err := Load("etc/helix.yaml", env{
		"PARTITIONS": "1", "OPEN": "true", "OPERATION": "stream", "MODEL": "env:LITERAL", "HEAT": "1.5", "EMPTY": "", "TIMEOUT": "2s",
	}.lookup)
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"etc/helix.yaml", "etc/creds", "etc/token", "etc/prompt.txt"}, c.SecretFiles())
	a := c.Agents["a"]
	assert.Equal(t, "-----BEGIN NATS USER JWT-----", c.NATS.Credentials.Reveal())
	assert.True(t, c.NATS.InlineCredentials())
	assert.Equal(t, 1, c.NATS.Partitions)
	assert.True(t, c.Auth.AllowUnauthenticated)
	assert.Equal(t, "t0ken", c.Auth.Tokens[0].Token.Reveal())
	assert.Equal(t, []string{"stream"}, c.Auth.Tokens[0].Operations)
	assert.Equal(t, "Be kind.\nBe brief.\n", a.SystemPrompt)
	assert.Equal(t, "env:LITERAL", a.Model.Name, "a reference's value is no reference")
	assert.Equal(t, 1.5, *a.Model.Temperature)
	assert.Equal(t, "", a.Tools["t"].HTTP.Headers["A"].Reveal())
	assert.Equal(t, "2s", a.Tools["t"].Timeout.String())
	assert.JSONEq(t, `{"type":"object","const":"env:X"}`, string(a.Tools["t"].InputSchema))
}
