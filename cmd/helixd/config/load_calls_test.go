package config

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Calls that wait, and agents that call others.
func TestLoadCalls(t *testing.T) {
	c, err := loadText(t, `
agents:
  boss:
    model: {provider: openai, name: m}
    subAgents: [writer, {agent: editor, description: Corrects., timeout: 1m}]
    persistentAgents: [{agent: boss}, {agent: writer, mode: non-blocking, description: Writes on.}]
    remoteAgents:
      analyst:
        description: Looks at numbers.
        url: https://other/agents
        headers: {Authorization: env:OTHER}
        agentType: analyst
        inputSchema: {type: object}
        outputSchema: {type: object, required: [x]}
      plain: {url: "http://other", agentType: x, timeout: 1m}
      eager: {url: "http://other", agentType: x, headerFiles: {Authorization: /run/token}, maxRetries: 0, retryBaseDelay: 10ms, streamRetries: 50, streamRetryBase: 1ms, idleTimeout: 2m}
    requireApproval: {"web_*": true, subagent__analyst: {when: {required: [urgent]}}}
    tools:
      always: {http: {url: "http://h"}, requireApproval: true}
      never: {http: {url: "http://h"}, requireApproval: false}
      some: {http: {url: "http://h"}, requireApproval: {when: {required: [force]}}}
      locate: {client: true, outputSchema: {required: [lat]}}
      hurry: {client: true, timeout: 5s}
      patient: {client: true, timeout: 0s}
      endless: {http: {url: "http://h"}, timeout: 0s}
  writer:
    model: {provider: openai, name: m}
    inputSchema: {type: object, properties: {topic: {type: string}}}
    outputSchema: {type: object}
  editor:
    model: {provider: openai, name: m}
    outputSchema: {type: object}
`, env{"OTHER": "Bearer sk-other"})
	require.NoError(t, err)
	a := c.Agents["boss"]
	assert.Equal(t, []SubAgent{{Agent: "writer"}, {Agent: "editor", Description: "Corrects.", Timeout: time.Minute}}, a.SubAgents)
	assert.Equal(t, []PersistentAgent{{Agent: "boss", Mode: ModeBlocking}, {Agent: "writer", Mode: ModeNonBlocking, Description: "Writes on."}}, a.PersistentAgents)
	analyst := a.RemoteAgents["analyst"]
	assert.Equal(t, "Bearer sk-other", analyst.Headers["Authorization"].Reveal())
	assert.Equal(t, defaultRemoteTimeout, analyst.Timeout)
	assert.Equal(t, "Looks at numbers.", analyst.Description)
	plain, eager := a.RemoteAgents["plain"], a.RemoteAgents["eager"]
	assert.Equal(t, time.Minute, plain.Timeout)
	assert.Equal(t, []any{3, time.Second, 3, 100 * time.Millisecond, time.Minute},
		[]any{plain.MaxRetries, plain.RetryBaseDelay, plain.StreamRetries, plain.StreamRetryBase, plain.IdleTimeout})
	assert.Equal(t, []any{0, 10 * time.Millisecond, 50, time.Millisecond, 2 * time.Minute},
		[]any{eager.MaxRetries, eager.RetryBaseDelay, eager.StreamRetries, eager.StreamRetryBase, eager.IdleTimeout})
	assert.Contains(t, c.SecretFiles(), "/run/token")
	assert.Equal(t, map[string]json.RawMessage{
		"web_*": json.RawMessage(`true`), "subagent__analyst": json.RawMessage(`{"when":{"required":["urgent"]}}`),
	}, a.RequireApproval)
	assert.Zero(t, a.Tools["locate"].Timeout, "no deadline unless configured")
	assert.Zero(t, a.Tools["patient"].Timeout)
	assert.Zero(t, a.Tools["endless"].Timeout)
	assert.Equal(t, defaultHTTPTimeout, a.Tools["always"].Timeout)
	assert.Equal(t, 5*time.Second, a.Tools["hurry"].Timeout)
	assert.JSONEq(t, `{"required":["lat"]}`, string(a.Tools["locate"].OutputSchema))
	assert.JSONEq(t, `{"type":"object","properties":{"topic":{"type":"string"}}}`, string(c.Agents["writer"].InputSchema))
	for name, want := range map[string]struct {
		required bool
		when     string
	}{"always": {true, ""}, "never": {false, ""}, "locate": {false, ""}, "some": {true, `{"required":["force"]}`}} {
		required, when := Approval(a.Tools[name].RequireApproval)
		assert.Equal(t, want.required, required, name)
		assert.Equal(t, want.when, string(when), name)
	}
	assert.NotContains(t, c.String(), "sk-other")
}
