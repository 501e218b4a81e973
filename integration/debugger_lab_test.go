package integration_test

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	root "github.com/helixd/helixd"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi"
)

// debuggedAgents are recorded; the candidate sends another order to track, and its clerk has other words.
const debuggedAgents = `
auth: {allowUnauthenticated: true}
prices: {scripted: {input: 3, output: 15}}
agents:
  support:
    systemPrompt: You help the customers of a shop.
    maxSteps: 9
    subAgents: [clerk]
    model:
      provider: scripted
      script:
        - toolCalls: [{name: find_order, arguments: {customer: ada, depth: 3}}]
        - toolCalls: [{name: subagent__clerk, arguments: {message: Which order is it?}}]
        - toolCalls: [{name: track, arguments: {order: A1, live: true}}]
        - text: Your order A1 arrives tomorrow, before noon.
    tools:
      find_order: {description: Finds a customer's order., client: true}
      track: {description: Says where an order is., client: true}
  clerk:
    description: Knows the orders.
    outputSchema: {type: object, properties: {order: {type: string}}}
    model: {provider: scripted, script: [{text: '{"order": "A1"}'}]}
`

// labWorld is a daemon whose sessions a lab judges.
type labWorld struct {
	t   *testing.T
	dir string
	d   *daemon
}

func newLabWorld(t *testing.T) *labWorld {
	dir := t.TempDir()
	config := filepath.Join(dir, "helix.yaml")
	require.NoError(t, os.WriteFile(config, []byte(debuggedAgents), 0o600))
	return &labWorld{t, dir, newDaemon(t, "serve", "--config", config, "--data-dir", filepath.Join(dir, "data"))}
}

// run judges the daemon's sessions, as somebody does who has changed a prompt, and stores the lab on
// the daemon. It returns the exit code.
func (w *labWorld) run() int {
	next := strings.NewReplacer("of a shop.", "of a shop, briefly.", "order: A1,", "order: A2,").Replace(debuggedAgents)
	require.NoError(w.t, os.WriteFile(filepath.Join(w.dir, "next.yaml"), []byte(next), 0o600))
	lab := filepath.Join(w.dir, "lab.yaml")
	require.NoError(w.t, os.WriteFile(lab, []byte("{cohort: good.cohort, baseline: helix.yaml, candidate: next.yaml, models: script, repeat: 2, assert: [{name: says when, contains: [tomorrow]}]}\n"), 0o600))
	helixd(w.t, "lab", "cohort", "create", filepath.Join(w.dir, "good.cohort"), "--server", w.d.url, "--agent", "support")
	out, err := exec.CommandContext(w.t.Context(), program(w.t), "lab", "run", lab, "--server", w.d.url).CombinedOutput()
	exit := new(exec.ExitError)
	if err != nil && !errors.As(err, &exit) {
		require.NoError(w.t, err)
	}
	w.t.Logf("helixd lab run: %s", out)
	if err == nil {
		return 0
	}
	return exit.ExitCode()
}

// labServer is a log with its server, to which the test appends as a lab does that runs: no route
// gives chunks the label that the table is made of.
type labServer struct {
	t    *testing.T
	node *root.Node
	url  string
}

func (g *labServer) start() string {
	var err error
	g.node, err = root.Open(g.t.Context(), g.t.TempDir())
	require.NoError(g.t, err)
	g.t.Cleanup(g.node.Close)
	server, err := httpapi.New(httpapi.Options{Log: g.node.Log, Loop: g.node.Loop, AllowUnauthenticated: true})
	require.NoError(g.t, err)
	g.t.Cleanup(server.Close)
	front := httptest.NewServer(server)
	g.t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	g.url = front.URL
	return g.url
}

// append appends {session, chunks: [{call, chunk}]} at once.
func (g *labServer) append(argument string) {
	var asked struct {
		Session string
		Chunks  []struct {
			Call  string
			Chunk json.RawMessage
		}
	}
	require.NoError(g.t, json.Unmarshal([]byte(argument), &asked))
	var entries []eventlog.Entry
	for _, c := range asked.Chunks {
		chunk, err := eventlog.ParseChunk(c.Chunk)
		require.NoError(g.t, err)
		e, err := eventlog.NewChunk(chunk, eventlog.Labels{Call: c.Call})
		require.NoError(g.t, err)
		entries = append(entries, e)
	}
	head, err := g.node.Log.Head(g.t.Context(), asked.Session)
	if !errors.Is(err, eventlog.ErrSessionNotFound) {
		require.NoError(g.t, err)
	}
	_, err = eventlog.AppendOnce(g.t.Context(), g.node.Log, asked.Session, rand.Text(), head, entries)
	require.NoError(g.t, err)
}
