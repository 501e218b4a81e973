package link

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestServerVersions(t *testing.T) {
	for _, good := range []string{
		"2.15.2", "v2.15.2", "2.15.2+build.7", "2.15.3", "2.15.3-beta.1", "2.15.10", "2.16.0", "2.16.0-dev", "3.0.0", "10.0.0",
	} {
		require.NoError(t, CheckServer(good), good)
	}
	for _, old := range []string{
		"2.15.1", "2.15.2-RC.1", "2.15.2-beta+x", "2.15.0", "2.14.99", "2.9.25", "1.99.99", "0.0.0", "2.15.2-2.16.0",
	} {
		require.EqualError(t, CheckServer(old), "jetstream: server version "+old+" is too old: nats-server 2.15.2 or later is needed "+
			"(before it, compaction of blocks ignored sync_interval: always; before 2.12 there are no atomic batches)")
	}
	for _, garbage := range []string{
		"", "2", "2.15", "2.15.2.1", "2.15.x", "latest", "2.15.-2", "-2.15.2", "2.15.2-", "2..2", "02.15.2", "2.15.2 ", " 2.15.2",
		"2.+15.2", "\x00", "٢.١٥.٢",
	} {
		require.ErrorContains(t, CheckServer(garbage), fmt.Sprintf("server version %q is not understood: nats-server 2.15.2 or later", garbage))
	}
}
