package config

import (
	"encoding/json"
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/model/provider"
)

// The part of the specification's example that this version has.
func TestLoadExample(t *testing.T) {
	text, err := os.ReadFile("testdata/example.yaml")
	require.NoError(t, err)
	c, err := loadText(t, string(text), env{
		"HELIX_TOKEN": "t0ken", "OPENAI_API_KEY": "sk-1", "WEATHER_TOKEN": "Bearer w", "OTLP_TOKEN": "Basic o", "GATEWAY": "gw",
	})
	require.NoError(t, err)

	assert.Equal(t, "127.0.0.1:8080", c.Listen)
	assert.Equal(t, "./helix-data", c.DataDir)
	assert.Zero(t, c.SyncInterval())
	assert.Equal(t, 1, c.NATS.Replicas)
	assert.Equal(t, "helix", c.NATS.Cluster.Name)
	assert.Equal(t, []Token{{
		Token: NewSecret("t0ken"), Name: "web", Operations: []string{"*"}, Sessions: []string{"*"},
	}}, c.Auth.Tokens)
	assert.Equal(t, Chat{
		DefaultAgent: "researcher", AutoResume: true, ContentReplay: true, StrictParts: true,
		StartMetadata: json.RawMessage(`{"version":2}`), FinishMetadata: json.RawMessage(`{"done":true}`),
		MessageID: "m{index}-{role}", HideChunks: []string{"thinking", "state_patch"}, ExposeCheckpoints: true,
	}, c.Chat)

	a := c.Agents["researcher"]
	assert.Equal(t, "You are a careful researcher.", a.SystemPrompt)
	assert.Equal(t, 10, a.MaxSteps)
	assert.Equal(t, "sk-1", a.Model.APIKey.Reveal())
	assert.Equal(t, 4096, a.Model.MaxOutputTokens)
	assert.Equal(t, 0.2, *a.Model.Temperature)
	assert.JSONEq(t, `{"findings": []}`, string(a.InitialState))
	assert.JSONEq(t, `{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"]}`, string(a.OutputSchema))

	assert.Equal(t, "m3-user", c.Chat.MessageName(3, "user"))
	m := c.Agents["writer"].Model
	assert.Equal(t, []any{0.9, 40, 5 * time.Minute, time.Hour, true}, []any{*m.TopP, *m.TopK, m.IdleTimeout, m.Cache, m.StrictOutput})
	assert.Equal(t, []string{"END"}, m.StopSequences)
	assert.Equal(t, "gw", m.Headers["X-Gateway"].Reveal())
	options, ok := m.Options()
	assert.True(t, ok)
	assert.Equal(t, provider.Options{"service_tier": json.RawMessage(`"auto"`)}, options)
	assert.Equal(t, []any{-0.5, 1.5, 7}, []any{*a.Model.FrequencyPenalty, *a.Model.PresencePenalty, *a.Model.Seed})

	weather := a.Tools["get_weather"]
	assert.Equal(t, "http://127.0.0.1:9000/weather", weather.HTTP.URL)
	assert.Equal(t, "Bearer w", weather.HTTP.Headers["Authorization"].Reveal())
	assert.Equal(t, 45*time.Second, weather.Timeout)
	assert.True(t, a.Tools["submit"].FinishWith)
	assert.Equal(t, defaultHTTPTimeout, a.Tools["submit"].Timeout)

	assert.True(t, a.Tools["get_location"].Client)
	required, when := Approval(a.Tools["move_file"].RequireApproval)
	assert.True(t, required)
	assert.JSONEq(t, `{"required":["force"]}`, string(when))
	assert.Equal(t, []SubAgent{{Agent: "writer"}, {Agent: "editor", Description: "Corrects.", Timeout: 2 * time.Minute}}, a.SubAgents)
	assert.Equal(t, []PersistentAgent{{Agent: "demo", Mode: ModeBlocking, Description: "Shows."}}, a.PersistentAgents)
	assert.Equal(t, 5*time.Minute, a.RemoteAgents["analyst"].Timeout)

	demo := c.Agents["demo"]
	assert.Equal(t, 20*time.Millisecond, demo.Model.ScriptDelay)
	assert.Equal(t, 3, demo.Model.MaxRetries)
	require.Len(t, demo.Model.Script, 2)
	assert.Equal(t, "Let me look.", demo.Model.Script[0].Reasoning)
	assert.JSONEq(t, `{"city":"Oslo"}`, string(demo.Model.Script[0].ToolCalls[0].Arguments))
	assert.Equal(t, "Rain.", demo.Model.Script[1].Text)
}

func TestLoadNothing(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "agents:\nnats:\n  tls:\n"} {
		c, err := loadText(t, text, nil)
		require.NoError(t, err)
		c.file, c.files, c.origins = "", nil, nil
		assert.Equal(t, Default(), c)
	}
	c, err := Load("", nil)
	require.NoError(t, err)
	assert.Equal(t, Default(), c)
	assert.NoError(t, Default().Validate())
}

func TestLoadNoFile(t *testing.T) {
	_, err := Load("absent.yaml", nil)
	assert.ErrorIs(t, err, fs.ErrNotExist)
	assert.ErrorContains(t, err, "absent.yaml")
}

func TestFreeJSON(t *testing.T) {
	c, err := loadText(t, `
agents:
  a:
    model: &m {provider: openai, name: x}
    initialState:
      int: 12345678901234567890123
      float: 0.10
      exp: 1e400
      hex: 0x10
      neg: -7
      none: ~
      yes: true
      text: "12"
      ref: env:NOT_RESOLVED
      list: [1, {a: "<", "b":2, c: {}, d: [x]}]
      url: {a: http://h:1/x, "b":'y', e:, f:   z, g:[1]}
      block: |
        one
        two
  b:
    model: {<<: *m, name: y, maxRetries: 0}
  c:
    model: *m
`, nil)
	require.NoError(t, err)
	assert.Equal(t, `{"int":12345678901234567890123,"float":0.10,"exp":1e400,"hex":16,"neg":-7,"none":null,"yes":true,`+
		`"text":"12","ref":"env:NOT_RESOLVED","list":[1,{"a":"\u003c","b":2,"c":{},"d":["x"]}],"url":{"a":"http://h:1/x","b":"y","e":null,"f":"z","g":[1]},"block":"one\ntwo\n"}`,
		string(c.Agents["a"].InitialState))
	assert.Equal(t, Model{Provider: ProviderOpenAI, Name: "y"}, c.Agents["b"].Model)
	assert.Equal(t, c.Agents["a"].Model, c.Agents["c"].Model)
}

func TestSyncInterval(t *testing.T) {
	c, err := loadText(t, "durability: interval=1m30s", nil)
	require.NoError(t, err)
	assert.Equal(t, 90*time.Second, c.SyncInterval())
}
