package config

import (
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
    subAgents: [writer]
    persistentAgents: [{agent: boss}, {agent: writer, mode: non-blocking}]
    remoteAgents:
      analyst:
        description: Looks at numbers.
        url: https://other/agents
        headers: {Authorization: env:OTHER}
        agentType: analyst
        inputSchema: {type: object}
        outputSchema: {type: object, required: [x]}
      plain: {url: "http://other", agentType: x, timeout: 1m}
    tools:
      always: {http: {url: "http://h"}, requireApproval: true}
      never: {http: {url: "http://h"}, requireApproval: false}
      some: {http: {url: "http://h"}, requireApproval: {when: {required: [force]}}}
      locate: {client: true, outputSchema: {required: [lat]}}
      hurry: {client: true, timeout: 5s}
  writer:
    model: {provider: openai, name: m}
    inputSchema: {type: object, properties: {topic: {type: string}}}
    outputSchema: {type: object}
`, env{"OTHER": "Bearer sk-other"})
	require.NoError(t, err)
	a := c.Agents["boss"]
	assert.Equal(t, []string{"writer"}, a.SubAgents)
	assert.Equal(t, []PersistentAgent{{Agent: "boss", Mode: ModeBlocking}, {Agent: "writer", Mode: ModeNonBlocking}}, a.PersistentAgents)
	analyst := a.RemoteAgents["analyst"]
	assert.Equal(t, "Bearer sk-other", analyst.Headers["Authorization"].Reveal())
	assert.Equal(t, DefaultRemoteTimeout, analyst.Timeout)
	assert.Equal(t, "Looks at numbers.", analyst.Description)
	assert.Equal(t, time.Minute, a.RemoteAgents["plain"].Timeout)
	assert.Equal(t, DefaultClientTimeout, a.Tools["locate"].Timeout)
	assert.Equal(t, 5*time.Second, a.Tools["hurry"].Timeout)
	assert.JSONEq(t, `{"required":["lat"]}`, string(a.Tools["locate"].OutputSchema))
	assert.JSONEq(t, `{"type":"object","properties":{"topic":{"type":"string"}}}`, string(c.Agents["writer"].InputSchema))
	for name, want := range map[string]struct {
		required bool
		when     string
	}{"always": {true, ""}, "never": {false, ""}, "locate": {false, ""}, "some": {true, `{"required":["force"]}`}} {
		required, when := a.Tools[name].Approval()
		assert.Equal(t, want.required, required, name)
		assert.Equal(t, want.when, string(when), name)
	}
	assert.NotContains(t, c.String(), "sk-other")
}
