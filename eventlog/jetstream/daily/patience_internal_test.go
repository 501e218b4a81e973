package daily

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
)

// A single server is asked once: its disk may stall for as long as the log waits for it.
func TestASingleServerHasTheLogsPatience(t *testing.T) {
	js, _, err := New(storetest.Connect(t), 1, nil).open(t.Context())
	require.NoError(t, err)
	require.Equal(t, link.LeaderPatience, js.Options().DefaultTimeout)
}
