package operate

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/internal/clitest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/eventlog/logtest"
)

// TestPartitionsGrowsALogOnNATS: helixd serve refuses a larger number there, and the command makes it.
func TestPartitionsGrowsALogOnNATS(t *testing.T) {
	t.Parallel()
	url, nc := clitest.NATS(t)
	log, err := jetstream.Open(t.Context(), nc, &jetstream.Options{Partitions: 2})
	require.NoError(t, err)
	for i := range 5 {
		session := fmt.Sprint("s", i)
		_, err := eventlog.AppendOnce(t.Context(), log, session, "w", 0, []eventlog.Entry{logtest.Text(session, "a")})
		require.NoError(t, err)
	}
	require.NoError(t, log.Close())
	_, err = jetstream.Open(t.Context(), nc, &jetstream.Options{Partitions: 5})
	require.ErrorContains(t, err, "stop everything that uses it and run helixd partitions")
	configured := func(text string) string {
		path := filepath.Join(t.TempDir(), "helix.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	out, _, err := clitest.Run[Commands](t, "", "partitions", "--config", configured(fmt.Sprintf("nats: {url: %q, partitions: 5}", url)))
	require.NoError(t, err)
	require.JSONEq(t, `{"partitions": 5}`, out)
	_, _, err = clitest.Run[Commands](t, "", "partitions", "--config", configured(fmt.Sprintf("nats: {url: %q, partitions: 4}", url)))
	require.ErrorContains(t, err, `was created for "2,5" partitions, not 4`)
	_, _, err = clitest.Run[Commands](t, "", "partitions", "--config", configured("nats: {partitions: 4}"))
	require.ErrorContains(t, err, "nats.url is empty")

	log, err = jetstream.Open(t.Context(), nc, &jetstream.Options{Partitions: 5})
	require.NoError(t, err)
	defer log.Close()
	for i := range 5 {
		session := fmt.Sprint("s", i)
		require.Equal(t, layout.Partition(session, 2), log.PartitionOf(session))
		_, err := log.Head(t.Context(), session)
		require.NoError(t, err)
	}
}
