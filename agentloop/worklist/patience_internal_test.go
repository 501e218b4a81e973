package worklist

import (
	"testing"
	"time"

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

// A tree counts as waiting after as long as any node leaves it to another: what a look finds
// between its announcement and its claim does not wait.
func TestATreeWaitsOnlyAfterAWhile(t *testing.T) {
	now := time.Now()
	since := map[tree]time.Time{{session: "just put there"}: now, {session: "of the last look"}: now.Add(-scanEvery)}
	require.Zero(t, waiting(since, now))
	since[tree{session: "left alone"}] = now.Add(-neglected)
	require.Equal(t, 1, waiting(since, now))
}
