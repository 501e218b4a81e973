package agentconfig

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/eventlog/memory"
)

// TestAgentsOf: what the file says is what the loop gets, and takes.
func TestAgentsOf(t *testing.T) {
	file := filepath.Join(t.TempDir(), "helix.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
agents:
  boss:
    model: {provider: scripted, script: [{text: hi}]}
    subAgents: [{agent: writer, description: Writes for you., timeout: 2m}]
    persistentAgents: [{agent: writer, mode: non-blocking, description: Writes on.}]
    remoteAgents: {analyst: {url: "http://127.0.0.1:1/agents", agentType: them, timeout: 1m, description: Counts., streamRetries: 0, streamRetryBase: 5ms}}
    requireApproval: {"subagent__*": true, companion__spawnAgent: {when: {required: [name]}}}
    tools:
      always: {http: {url: "http://h"}, requireApproval: true}
      locate: {client: true, strict: true, outputSchema: {required: [lat]}}
      some: {http: {url: "http://h"}, requireApproval: {when: {properties: {force: {const: true}}, required: [force]}}}
      submit: {http: {url: "http://h"}, finishWith: true, timeout: 5s}
  writer:
    model: {provider: openai, name: m, strictOutput: true}
    inputSchema: {type: object, properties: {topic: {type: string}}}
    outputSchema: {type: object}
`), 0o600))
	c, err := config.Load(file, os.LookupEnv)
	require.NoError(t, err)
	agents, err := Agents(c)
	require.NoError(t, err)
	loop, err := engine.New(memory.New(), agents, nil)
	require.NoError(t, err)
	loop.Stop()

	require.Len(t, agents, 2)
	boss, writer := agents[0], agents[1]
	require.Equal(t, []agentloop.SubAgent{{Agent: "writer", Description: "Writes for you.", Timeout: 2 * time.Minute}}, boss.SubAgents)
	require.Equal(t, []agentloop.PersistentAgent{{Agent: "writer", Mode: agentloop.NonBlocking, Description: "Writes on."}}, boss.PersistentAgents)
	require.JSONEq(t, `{"type":"object","properties":{"topic":{"type":"string"}}}`, string(writer.InputSchema))
	require.Len(t, boss.RemoteAgents, 1)
	remote := boss.RemoteAgents[0]
	require.NotNil(t, remote.Transport)
	require.Equal(t, []string{"analyst", "them", "Counts."}, []string{remote.Name, remote.AgentType, remote.Description})
	require.Equal(t, time.Minute, remote.Timeout)
	require.Equal(t, -1, remote.StreamRetries, "never")
	require.Equal(t, 5*time.Millisecond, remote.StreamRetryBase)

	require.Len(t, boss.Approvals, 2)
	require.Equal(t, []string{"companion__spawnAgent", "subagent__*"}, []string{boss.Approvals[0].Tools, boss.Approvals[1].Tools})
	for args, want := range map[string]bool{`{"name":"x"}`: true, `{}`: false} {
		need, err := boss.Approvals[0].Require(t.Context(), nil, json.RawMessage(args))
		require.NoError(t, err)
		require.Equal(t, want, need, args)
	}
	require.True(t, writer.StrictOutput)

	always, locate, some, submit := boss.Tools[0], boss.Tools[1], boss.Tools[2], boss.Tools[3]
	require.True(t, locate.Client)
	require.True(t, locate.Strict)
	require.Nil(t, locate.Execute)
	require.Zero(t, locate.Timeout)
	require.JSONEq(t, `{"required":["lat"]}`, string(locate.OutputSchema))
	require.True(t, submit.FinishWith)
	require.Equal(t, 5*time.Second, submit.Timeout)
	require.Nil(t, submit.RequireApproval)
	for args, want := range map[string]bool{
		`{"force":true}`: true, `{"force":false}`: false, `{}`: false, `{"force":true,"x":1}`: true,
	} {
		need, err := some.RequireApproval(t.Context(), nil, json.RawMessage(args))
		require.NoError(t, err)
		require.Equal(t, want, need, args)
		need, err = always.RequireApproval(t.Context(), nil, json.RawMessage(args))
		require.NoError(t, err)
		require.True(t, need)
	}
}
