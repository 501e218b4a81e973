package worklist

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
)

// A single server is asked once for the list's stream: its disk may stall for as long as
// the log waits for it.
func TestASingleServerHasTheLogsPatience(t *testing.T) {
	_, nc := embedtest.Start(t, embed.Options{})
	l, err := Open(t.Context(), nc, Options{Node: "n"})
	require.NoError(t, err)
	t.Cleanup(l.Close)
	require.Equal(t, leaderPatience, l.js.Options().DefaultTimeout)
}
