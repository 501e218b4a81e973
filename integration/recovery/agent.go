package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// A run says a word each pace, a step of words at a time, calls a tool, and goes
// on like that for ever.
const (
	pace  = 100 * time.Millisecond
	words = 10
)

// tool is the HTTP tool that the runs call.
func tool(w http.ResponseWriter, _ *http.Request) {
	io.WriteString(w, `{"result":"there"}`) // the node has left if that fails
}

// agents is the agents' part of a node's configuration.
func (b *bench) agents() string {
	return fmt.Sprintf(`
drainTimeout: 30s
agents:
  walker:
    maxSteps: 1000000
    model:
      provider: scripted
      scriptDelay: %s
      script: [{text: %q, toolCalls: [{name: walk}]}]
    tools:
      walk: {description: One step., inputSchema: {type: object}, http: {url: %q}}
`, pace, strings.TrimSpace(strings.Repeat("onward ", words)), b.tool.URL)
}
