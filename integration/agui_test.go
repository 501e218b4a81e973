package integration_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/helixd/helixd/integration/testkit"
	"github.com/stretchr/testify/require"
)

// TestAGUI runs AG-UI's own client against the daemon. It needs node and what `make agui`
// installs.
func TestAGUI(t *testing.T) {
	t.Parallel()
	testkit.With(t, "HELIX_AGUI", "agui")
	runNode(t, "agui")
}

// TestAGUIOnAnotherNode: a run that one node drives is rejoined on another one when its node has
// died, after any event that the client has; a new page begins on a third one; and the same
// request again streams the same run there.
func TestAGUIOnAnotherNode(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	nodes := slowNodes(t, "HELIX_PROTOCOLS_AGUI_ENABLED=true")
	const request = `{"threadId":"t","runId":"r","protocolVersion":"1.0","messages":[{"id":"u","role":"user","content":"Hi"}]}`
	resp := nodes[0].call(http.MethodPost, "/ag-ui/greeter", request)
	frames := aguiFrames(t, resp, func(f string) bool { return strings.Contains(f, "TEXT_MESSAGE_CONTENT") })
	nodes[0].kill()
	ended := func(f string) bool { return strings.Contains(f, `"type":"RUN_`) && !strings.Contains(f, "RUN_STARTED") }
	rest := func(n *node, last string) []string {
		return aguiFrames(t, n.patiently("/ag-ui/greeter/t?after="+aguiID(t, last)), ended)
	}
	for begin := time.Now(); !ended(frames[len(frames)-1]); { // a node without a leader of the log ends its streams
		require.Less(t, time.Since(begin), clusterPatience)
		for _, f := range rest(nodes[1], frames[len(frames)-1]) {
			if !strings.Contains(f, "STREAM_BROKEN_OFF") {
				frames = append(frames, f)
			}
		}
	}
	all := strings.Join(frames, "\n")
	require.Contains(t, all, "MESSAGES_SNAPSHOT", "what the dead node had streamed is taken back")
	require.Contains(t, frames[len(frames)-1], `"result":"Hello from a cluster of three."`)
	for i, f := range frames {
		require.Equal(t, frames[i+1:], rest(nodes[2], f))
	}
	require.Equal(t, frames, aguiFrames(t, nodes[2].call(http.MethodPost, "/ag-ui/greeter", request), ended))
	page := strings.Join(aguiFrames(t, nodes[2].patiently("/ag-ui/greeter/t"), ended), "\n")
	require.Contains(t, page, `"content":"Hello from a cluster of three."`)
}

// aguiFrames returns the frames of a stream up to the last one.
func aguiFrames(t *testing.T, resp *http.Response, last func(string) bool) []string {
	t.Helper()
	defer resp.Body.Close()
	frames := []string{}
	if resp.StatusCode == http.StatusNoContent {
		return frames
	}
	require.Equal(t, http.StatusOK, resp.StatusCode)
	id := ""
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if line, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			id = line
		}
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			frames = append(frames, id+" "+data)
			if last(data) {
				break
			}
		}
	}
	return frames
}

// aguiID returns the id of a frame.
func aguiID(t *testing.T, frame string) string {
	t.Helper()
	id, _, ok := strings.Cut(frame, " ")
	require.True(t, ok && id != "", frame)
	return id
}

// TestCopilotKit runs CopilotKit's runtime and client in front of the daemon. It needs node and
// what `make copilotkit` installs.
func TestCopilotKit(t *testing.T) {
	testkit.With(t, "HELIX_COPILOTKIT", "copilotkit")
	t.Setenv("COPILOTKIT_TELEMETRY_DISABLED", "true")
	runNode(t, "copilotkit")
}
