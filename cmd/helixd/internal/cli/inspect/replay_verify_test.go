package inspect

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/verify"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/agentconfig"
	"github.com/helixd/helixd/cmd/helixd/internal/clitest"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
)

const guideConfig = `
agents:
  guide:
    model:
      provider: scripted
      script:
        - toolCalls: [{id: c1, name: get_location, arguments: {exact: true}}]
        - text: From there it is a short walk.
    tools:
      get_location:
        client: true
        inputSchema: {type: object, properties: {exact: {type: boolean}}}
`

// guideAgents are those of a configuration with some of its text replaced, and
// its file.
func guideAgents(t *testing.T, replace ...string) (string, []agentloop.Agent) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "helix.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.NewReplacer(replace...).Replace(guideConfig)), 0o600))
	c, err := config.Load(file, nil)
	require.NoError(t, err)
	agents, err := agentconfig.Agents(c)
	require.NoError(t, err)
	return file, agents
}

// A configuration is tried on a session of the one before.
func TestReplayVerify(t *testing.T) {
	file, agents := guideAgents(t)
	log, helixd := clitest.Serve[Commands](t, agents...)
	loop, err := engine.New(log, agents, nil)
	require.NoError(t, err)
	t.Cleanup(loop.Stop)
	_, err = loop.Start(t.Context(), engine.StartRequest{SessionID: "s", AgentType: "guide", Messages: []agentloop.Input{{Content: "Where to?"}}})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		tree := clitest.Folded(t, log, "s")
		return tree.Suspended() && tree.StreamStatus != "active"
	}, 2*time.Minute, time.Millisecond)

	out, err := helixd("", "replay", "s", "--verify", "--config", file)
	require.NoError(t, err)
	require.Regexp(t, `^s: \d+ records, 3 decisions: today's agents make them all alike\n$`, out)
	out, err = helixd("", "replay", "s", "--verify", "--config", file, "--json", "--run", clitest.Folded(t, log, "s").Runs[0].RunID)
	require.NoError(t, err)
	var found verify.Result
	require.NoError(t, json.Unmarshal([]byte(out), &found))
	require.Equal(t, verify.Result{SessionID: "s", Head: clitest.Folded(t, log, "s").Head, Records: found.Records, Decisions: 3}, found)

	changed, _ := guideAgents(t, "boolean", "string")
	out, err = helixd("", "replay", "s", "--verify", "--config", changed)
	require.ErrorIs(t, err, flags.ErrDamage)
	require.Equal(t, 2, flags.ExitCode(err))
	require.Regexp(t, `^s at sequence \d+: agent guide, step 1, call c1, run-\w+
  recorded: waited for a client to execute get_location
  today:    would refuse get_location: tool_input_invalid
2 decisions were compared, this one included; what follows it was not
$`, out)
	out, err = helixd("", "replay", "s", "--verify", "--config", changed, "--json")
	require.ErrorIs(t, err, flags.ErrDamage)
	require.NoError(t, json.Unmarshal([]byte(out), &found))
	require.Equal(t, "c1", found.Differs.CallID)

	before := clitest.Folded(t, log, "s")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no configuration":      {[]string{"replay", "s", "--verify"}, "--config FILE"},
		"a part of the session": {[]string{"replay", "s", "--verify", "--config", file, "--from", "3"}, "the whole session"},
		"no verification":       {[]string{"replay", "s", "--config", file}, "go with --verify"},
		"no such run":           {[]string{"replay", "s", "--verify", "--config", file, "--run", "nobody"}, `the session has no run "nobody"`},
		"no such session":       {[]string{"replay", "nobody", "--verify", "--config", file}, "(NOT_FOUND)"},
		"no such file":          {[]string{"replay", "s", "--verify", "--config", file + "x"}, "no such file"},
	} {
		_, err := helixd("", c.args...)
		require.ErrorContains(t, err, c.want, name)
	}
	require.Equal(t, before, clitest.Folded(t, log, "s"), "nothing is written")
}
