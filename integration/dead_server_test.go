package integration_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/integration/deployment"
	"github.com/helixd/helixd/integration/testkit"
)

// A server that was killed before the log's leader was elected is missing, too: the
// leader has never heard of it.
func TestAServerThatDiedBeforeTheElectionIsMissing(t *testing.T) {
	testkit.Long(t)
	testkit.Cluster(t)
	t.Parallel()
	d, err := deployment.Embedded(deployment.Binaries{Helixd: program(t)}, t.TempDir(), 3, "")
	require.NoError(t, err)
	t.Cleanup(d.Close)
	require.NoError(t, d.Start(t.Context()))
	require.NoError(t, d.Streams.WaitHealthy(t.Context()))
	require.NoError(t, d.Streams.Lead(t.Context(), deployment.Log, d.Nodes[0].Name))

	d.Nodes[2].Kill()
	require.NoError(t, d.Streams.StepDown(t.Context(), deployment.Log))
	require.Eventually(t, func() bool {
		r, err := d.Nodes[1].Ready(t.Context())
		return err == nil && len(r.Replicas.Missing) == 1
	}, time.Minute, 100*time.Millisecond)
}
