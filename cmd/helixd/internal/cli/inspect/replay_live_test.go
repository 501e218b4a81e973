package inspect

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/cmd/helixd/internal/clitest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
)

// A session continues differently from a point on, and the output shows how.
func TestReplayLive(t *testing.T) {
	_, agents := guideAgents(t)
	log, helixd := clitest.Serve[Commands](t, agents...)
	loop, err := engine.New(log, agents, nil)
	require.NoError(t, err)
	t.Cleanup(loop.Stop)
	_, err = loop.Start(t.Context(), engine.StartRequest{SessionID: "s", AgentType: "guide", Messages: []agentloop.Input{{Content: "Where to?"}}})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		tree := clitest.Folded(t, log, "s")
		return tree.Suspended() && tree.StreamStatus == eventlog.StreamWaiting
	}, 2*time.Minute, time.Millisecond)
	before := clitest.Folded(t, log, "s")

	out, err := helixd("", "replay", "s", "--live", "--tool-result", `c1={"city":"Oslo"}`, "--as", "oslo")
	require.NoError(t, err)
	first, rest, _ := strings.Cut(out, "\n")
	require.Regexp(t, `^oslo is what s was at \d+, with another result of c1$`, first)
	require.Contains(t, rest, `{"city":"Oslo"}`)
	require.Contains(t, rest, "From there it is a short walk.")
	require.True(t, strings.HasSuffix(rest, "ended\n"), rest)

	prompt := filepath.Join(t.TempDir(), "prompt")
	require.NoError(t, os.WriteFile(prompt, []byte("Be brief."), 0o600))
	out, err = helixd("", "replay", "s", "--live", "--message", "And now?", "--system-prompt", "@"+prompt, "--as", "now", "--json")
	require.NoError(t, err)
	first, _, _ = strings.Cut(out, "\n")
	var fork api.Forked
	require.NoError(t, json.Unmarshal([]byte(first), &fork))
	require.Equal(t, "now", fork.SessionID)
	tree := clitest.Folded(t, log, "now")
	require.Equal(t, "And now?", tree.Messages[0].Content)
	require.Equal(t, "Be brief.", *tree.SystemPrompt)
	require.True(t, tree.Suspended(), "it asks the client again")

	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"an edit of nothing":  {[]string{"replay", "s", "--message", "x"}, "go with --live"},
		"a name of nothing":   {[]string{"replay", "s", "--as", "x"}, "go with --live"},
		"two replays":         {[]string{"replay", "s", "--live", "--verify", "--config", "x"}, "can't be combined with"},
		"no daemon":           {[]string{"replay", "s", "--live", "--nats", "nats://127.0.0.1:1"}, "needs a daemon"},
		"two results":         {[]string{"replay", "s", "--live", "--tool-result", "c1=1", "--tool-error", "c1=x"}, "can't be used together"},
		"no call":             {[]string{"replay", "s", "--live", "--tool-result", "1"}, "must be CALL=JSON"},
		"no JSON":             {[]string{"replay", "s", "--live", "--tool-result", "c1={"}, "must be JSON"},
		"no such file":        {[]string{"replay", "s", "--live", "--system-prompt", "@" + prompt + "x"}, "no such file"},
		"no such call":        {[]string{"replay", "s", "--live", "--tool-error", "c9=x", "--as", "bad"}, "(INVALID_REQUEST)"},
		"a moment to come":    {[]string{"replay", "s", "--live", "--from", "9999", "--as", "bad"}, "(CURSOR_AHEAD)"},
		"nothing":             {[]string{"replay", "s@0", "--live", "--as", "bad"}, "there is nothing up to sequence 0"},
		"a stretch of all":    {[]string{"replay", "s@0..", "--live", "--as", "bad"}, "there is nothing up to sequence 0"},
		"from nothing":        {[]string{"replay", "s", "--from", "0", "--live", "--as", "bad"}, "there is nothing up to sequence 0"},
		"nobody's":            {[]string{"replay", "nobody", "--live"}, "(NOT_FOUND)"},
		"a name that is gone": {[]string{"replay", "s", "--live", "--as", "oslo"}, "(SESSION_EXISTS)"},
	} {
		_, err := helixd("", c.args...)
		require.ErrorContains(t, err, c.want, name)
	}
	_, err = log.Head(t.Context(), "bad")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	require.Equal(t, before, clitest.Folded(t, log, "s"))
}

// If the connection to a fork is lost, the error says how to see the rest: the same command would
// make another fork.
func TestReplayLiveThatLosesTheConnection(t *testing.T) {
	_, err := told(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"sessionId":"f","fromSessionId":"s","fromSequence":3}`))
			return
		}
		sendStream(": heartbeat\n\n")(w, r)
	}, "replay", "s@3", "--live")
	require.EqualError(t, err, "the connection was lost; the fork runs on: helixd tail f --from 0")
}
