package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSecret(t *testing.T) {
	s := NewSecret("hunter2")
	assert.Equal(t, "hunter2", s.Reveal())
	assert.False(t, s.IsZero())
	assert.True(t, Secret{}.IsZero())
	assert.True(t, NewSecret("").IsZero())
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		assert.Equal(t, redacted, fmt.Sprintf(verb, s), verb)
		hidden := fmt.Sprintf(verb, struct{ s Secret }{s})
		assert.NotContains(t, hidden, "hunter2", verb)
		assert.NotContains(t, hidden, fmt.Sprintf("%x", "hunter2"), verb)
	}
	text, err := s.MarshalText()
	require.NoError(t, err)
	assert.Equal(t, redacted, string(text))
	data, err := json.Marshal(map[string]any{"a": s, "b": &s})
	require.NoError(t, err)
	assert.Equal(t, `{"a":"[redacted]","b":"[redacted]"}`, string(data))
}

// Nothing that prints a Config shows what is secret in it.
func TestRedactedConfig(t *testing.T) {
	c, err := loadText(t, `
nats: {url: "nats://u:hunter2@h:1, nats://hunter2@h:2", credentials: hunter2, password: hunter2, token: hunter2}
auth: {tokens: [{token: hunter2}]}
tracing: {endpoint: "https://u:hunter2@h", headers: {Authorization: hunter2}}
agents:
  a:
    model: {provider: openai, name: m, apiKey: hunter2, baseURL: "https://u:hunter2@h/v1", headers: {X-Gateway: hunter2}}
    tools: {t: {http: {url: "http://u:hunter2@h", headers: {Authorization: hunter2}}}}
`, nil)
	require.NoError(t, err)
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "config", c, "value", *c)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "config", c, "agents", c.Agents)
	data, err := json.Marshal(c)
	require.NoError(t, err)
	for _, out := range []string{
		c.String(), fmt.Sprintf("%v %+v %#v %s", c, c, c, c), fmt.Sprintf("%v %+v %#v", *c, *c, *c), string(data),
	} {
		assert.NotContains(t, out, "hunter2")
		assert.Contains(t, out, "nats://[redacted]@h:1, nats://[redacted]@h:2")
	}
	assert.NotContains(t, fmt.Sprintf("%+v %+v", c.Auth, c.Agents["a"].Tools["t"].HTTP.Headers), "hunter2")
	assert.NotContains(t, log.String(), `Authorization":"hunter2`)

	c.NATS.URL = "http://u:hunter2@h"
	c.Auth.Tokens[0].Token = NewSecret("")
	assert.NotContains(t, c.Validate().Error(), "hunter2")
}
