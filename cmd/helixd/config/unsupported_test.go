package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// refusals is a file for each row of the table, with the key and its line.
var refusals = map[string]struct{ text, want string }{
	"nats.partitions": {"nats:\n  partitions: 16\n", "helix.yaml:2: nats.partitions"},
	"nats.cluster":    {"nats:\n  cluster:\n    listen: :6222\n", "helix.yaml:2: nats.cluster"},
}

func TestUnsupported(t *testing.T) {
	for _, row := range unsupported {
		t.Run(row.key, func(t *testing.T) {
			refusal, ok := refusals[row.key]
			require.True(t, ok, "the test has no file for this row")
			_, err := loadText(t, refusal.text, nil)
			assert.EqualError(t, err, refusal.want+": not supported by this version")
		})
	}
}

// The whole schema parses: only the missing features are refused.
func TestWholeSchema(t *testing.T) {
	var text strings.Builder
	text.WriteString(tool("        requireApproval: true\n"))
	text.WriteString(`    mcp: [{name: files, command: [mcp-files, /data]}, {name: web, url: "http://127.0.0.1:9001/mcp"}]
    inputSchema: {type: object}
    outputSchema: {type: object}
    subAgents: [a]
    persistentAgents: [{agent: a, mode: blocking}]
    remoteAgents: {analyst: {url: "https://other/agents", agentType: analyst, timeout: 5m, inputSchema: {type: object}, outputSchema: {}}}
nats:
  partitions: 0
  cluster: {name: helix, listen: "", routes: ["nats://h:6222"]}
`)
	_, err := loadText(t, text.String(), nil)
	require.Error(t, err)
	lines := strings.Split(err.Error(), "\n")
	assert.Len(t, lines, 1)
	for _, line := range lines {
		assert.True(t, strings.HasSuffix(line, ": not supported by this version"), line)
	}
}

func TestUnsupportedFromEnvironment(t *testing.T) {
	_, err := loadText(t, "nats: {cluster: {name: helix}}\n", env{"HELIX_NATS_CLUSTER_NAME": "x", "HELIX_CHAT_STRICT_PARTS": "false"})
	assert.EqualError(t, err, "HELIX_NATS_CLUSTER_NAME: nats.cluster: not supported by this version")
}
