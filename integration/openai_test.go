package integration_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/helixd/helixd/integration/testkit"
	"github.com/stretchr/testify/require"
)

// TestOpenAI runs the official OpenAI SDKs, for Node and for Go, against the daemon, and the
// cases of the Open Responses compliance suite. It needs node and what `make openai` installs.
func TestOpenAI(t *testing.T) {
	t.Parallel()
	testkit.With(t, "HELIX_OPENAI", "openai")
	runNode(t, "openai")
}

// TestResponsesOnAnotherNode: a response is read on another node than the one that drives it, is
// continued there when that node dies in the middle of it, and can be read on a third node from any
// event on.
func TestResponsesOnAnotherNode(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	nodes := slowNodes(t, "HELIX_PROTOCOLS_RESPONSES_ENABLED=true")
	var made struct{ ID string }
	resp := nodes[0].call(http.MethodPost, "/v1/responses", `{"model":"greeter","input":"Hi","background":true}`)
	raw, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode, "%s", raw)
	require.NoError(t, json.Unmarshal(raw, &made))

	events := responseEvents(t, nodes[1], made.ID, -1, func(e string) bool { return strings.Contains(e, `"response.output_text.delta"`) })
	nodes[0].kill()
	ended := func(e string) bool { return strings.Contains(e, `"response.completed"`) }
	for begin := time.Now(); !ended(events[len(events)-1]); { // a node without a leader of the log ends its streams
		require.Less(t, time.Since(begin), clusterPatience)
		events = append(events, responseEvents(t, nodes[1], made.ID, len(events)-1, ended)...)
	}
	var done []string
	for i, e := range events {
		var is struct {
			Type   string `json:"type"`
			Number int    `json:"sequence_number"`
			Item   struct{ Status string }
		}
		require.NoError(t, json.Unmarshal([]byte(e), &is))
		require.Equal(t, i, is.Number)
		if is.Type == "response.output_item.done" {
			done = append(done, is.Item.Status)
		}
	}
	require.Equal(t, []string{"incomplete", "completed"}, done)
	require.Contains(t, events[len(events)-1], "Hello from a cluster of three.")
	for n := range events {
		require.Equal(t, events[n+1:], responseEvents(t, nodes[2], made.ID, n, ended))
	}
}

// responseEvents returns the events of a response after one, to the one that enough recognizes, or
// to the end of the stream.
func responseEvents(t *testing.T, n *node, id string, after int, enough func(string) bool) (events []string) {
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
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || data == "[DONE]" || strings.Contains(data, `"type":"error"`) {
			continue
		}
		if events = append(events, data); enough(data) {
			break
		}
	}
	return events
}
