package daemon

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/internal/clitest"
)

func TestConfigCheck(t *testing.T) {
	const agents = "agents:\n  b: {model: {provider: scripted, script: [{text: x}]}}\n  a: {model: {provider: scripted, script: [{text: x}]}}\n"
	good := clitest.Config(t, "auth: {allowUnauthenticated: true}\n"+agents)
	out, _, err := clitest.Run[ConfigCommands](t, "", "check", good)
	require.NoError(t, err)
	require.Equal(t, good+": no fault; 2 agents: a, b\n", out)
	out, _, err = clitest.Run[ConfigCommands](t, "", "check", good, "--json")
	require.NoError(t, err)
	require.JSONEq(t, fmt.Sprintf(`{"file":%q,"agents":["a","b"]}`, good), out)

	bad := clitest.Config(t, "auht: {}\nagents: {a: {model: {provider: acme}}}\n")
	_, _, err = clitest.Run[ConfigCommands](t, "", "check", bad)
	require.ErrorContains(t, err, bad+":4: auht: ")
	require.ErrorContains(t, err, bad+":5: agents.a.model.provider: ")
	_, _, err = clitest.Run[ConfigCommands](t, "", "check", clitest.Config(t, agents))
	require.ErrorContains(t, err, "no caller could be authenticated", "as serve refuses it")
}
