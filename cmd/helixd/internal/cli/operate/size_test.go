package operate

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/internal/clitest"
	"github.com/helixd/helixd/cmd/helixd/sizing"
)

func TestSize(t *testing.T) {
	t.Parallel()
	out, _, err := clitest.Run[Commands](t, "", "size", "--sessions", "43200", "--tokens", "1000", "--nodes", "3")
	require.NoError(t, err)
	require.Contains(t, out, "at the peak: 40 runs at once, 2000 tokens/s, 40 clients\n")
	require.Contains(t, out, "each of 3 nodes (3 replicas): ")
	out, _, err = clitest.Run[Commands](t, "", "size", "--json")
	require.NoError(t, err)
	var e sizing.Estimate
	require.NoError(t, json.Unmarshal([]byte(out), &e))
	require.EqualValues(t, 1, e.Replicas, "of one node")
	require.Len(t, e.Constants, len(sizing.Constants()))
	out, _, err = clitest.Run[Commands](t, "", "size", "--idle", "50000")
	require.NoError(t, err)
	require.Contains(t, out, "limit: more than 32768 clients a node")
	_, _, err = clitest.Run[Commands](t, "", "size", "--nodes", "3", "--replicas", "5")
	require.ErrorContains(t, err, "replicas must be 1, 3 or 5, and not more than the nodes")
}
