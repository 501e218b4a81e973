package integration_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOpenAI runs the official OpenAI SDKs, for Node and for Go, against the daemon, and the
// cases of the Open Responses compliance suite. It needs node and what `make openai` installs.
func TestOpenAI(t *testing.T) {
	if os.Getenv("HELIX_OPENAI") == "" {
		t.Skip("set HELIX_OPENAI=1, as `make openai` does")
	}
	runNode(t, "openai")
}

// TestResponsesOnAnotherNode: a response that one node drives is read on another one, from any
// event on, while it is in progress, when its node has died, and later.
func TestResponsesOnAnotherNode(t *testing.T) {
	t.Parallel()
	nodes := newNodes(t)
	for _, n := range nodes {
		n.env = append(n.env, "HELIX_PROTOCOLS_RESPONSES_ENABLED=true")
		n.launch()
	}
	for _, n := range nodes {
		n.ready()
	}
	var made struct{ ID string }
	resp := nodes[0].call(http.MethodPost, "/v1/responses", `{"model":"greeter","input":"Hi","background":true}`)
	raw, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode, "%s", raw)
	require.NoError(t, json.Unmarshal(raw, &made))
	whole := responseEvents(t, nodes[1], made.ID, -1)
	require.Contains(t, whole[len(whole)-1], `"response.completed"`)
	nodes[0].kill()
	for n := range whole {
		require.Equal(t, whole[n+1:], responseEvents(t, nodes[2], made.ID, n))
	}
}

// responseEvents returns the events of a response after one.
func responseEvents(t *testing.T, n *node, id string, after int) (events []string) {
	t.Helper()
	path := "/v1/responses/" + id + "?stream=true"
	if after >= 0 {
		path += fmt.Sprintf("&starting_after=%d", after)
	}
	resp := n.patiently(path)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	events = []string{}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && data != "[DONE]" {
			events = append(events, data)
		}
	}
	return events
}
