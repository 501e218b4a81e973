package responses_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A background response is in progress as soon as its run is, also if the run begins while a sub-agent of
// an earlier one works: its node holds the session then, and does not claim it again.
func TestABackgroundResponseBesideASubAgent(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	first := g.create(object{"model": "parent", "input": "spawn slow"})
	second := g.create(object{"model": "parent", "input": "slow", "background": true, "previous_response_id": first["id"]})
	require.Equal(t, sessionOf(first), sessionOf(second))
	path := "/responses/" + second["id"].(string)
	require.Eventually(t, func() bool { return textOf(g.get(path)) == "one " }, within, 10*time.Millisecond)
	require.Equal(t, "in_progress", g.get(path)["status"])
	close(g.slow)
	require.Equal(t, []string{"created", "queued", "in_progress", "output_item.added"}, typesOf(g.events("GET", path+"?stream=true", nil))[:4])
}
