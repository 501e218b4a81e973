package main

import (
	"errors"
	"fmt"
	"io"
	"net"
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
type tool struct {
	url    string
	server *http.Server
}

func startTool() (*tool, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	t := &tool{url: "http://" + l.Addr().String(), server: &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `{"result":"there"}`) // it has left if that fails
		}),
	}}
	go func() {
		if err := t.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			say("the tool: %v", err)
		}
	}()
	return t, nil
}

func (t *tool) stop() { t.server.Close() }

// agents is the agents' part of a node's configuration.
func (t *tool) agents() string {
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
`, pace, strings.TrimSpace(strings.Repeat("onward ", words)), t.url)
}
