package integration_test

import (
	"bytes"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/jetstreamtest"
	"github.com/helixd/helixd/integration/testkit"
)

// incidentFile is what `helixd dev` imports.
const incidentFile = "../cmd/helixd/internal/demo/incident.ndjson"

var recordIncident = flag.Bool("record-incident", false, "write "+incidentFile+" again")

// hesitation is how long the person takes to approve, when it is recorded.
const hesitation = 6 * time.Second

// incident has two nodes play the session demo-incident, of which the first is killed in
// mid-sentence, and returns the records and the state at the other one. It reports false
// if the sentence was finished before the node was killed.
func incident(t *testing.T) (records []byte, state map[string]any, inTime bool) {
	t.Helper()
	url := newServer(t, "outside", nil).ClientURL()
	var nodes []*daemon
	for range 2 {
		n := newDaemon(t, "dev", "--nats-url", url, "--data-dir", filepath.Join(t.TempDir(), "data"))
		n.start()
		nodes = append(nodes, n)
	}
	log := jetstreamtest.Open(t, connect(t, url), &jetstream.Options{Existing: true})
	const session = "demo-incident"
	_, none := nodes[0].get("/sessions/" + session)
	require.Equal(t, "NOT_FOUND", none["code"], "a deployment of others is left alone")

	nodes[0].ok("/start", map[string]any{
		"sessionId": session, "agentType": "refunds", "userId": "grace", "tags": []string{"incident"},
		"message": "Booking B-2041, the double room in Lisbon: my card was charged twice, 42.50 euros each. Please give one of them back.",
	})
	last := "open," // of its sentence, so that there is time to kill it in
	if *recordIncident {
		last = "working"
	}
	said := func(words string) bool {
		all := ""
		for r, err := range log.Read(t.Context(), session, 0, 0) {
			if err == nil && r.Type == "text_delta" {
				all += string(r.Payload)
			}
		}
		return strings.Contains(all, words)
	}
	require.Eventually(t, func() bool { return said(last) }, 2*time.Minute, time.Millisecond)
	nodes[0].kill()
	if said("first.") {
		return nil, nil, false
	}

	survivor := nodes[1]
	survivor.waitFor(session, "paused")
	_, summary := survivor.get("/sessions/" + session)
	pending := summary["pendingToolCalls"].([]any)
	require.Len(t, pending, 1)
	if *recordIncident {
		<-time.After(hesitation)
	}
	survivor.ok("/submit-tool-result", map[string]any{
		"sessionId": session, "kind": "approval-response", "toolCallId": pending[0].(map[string]any)["toolCallId"],
		"approved": true, "reason": "Charged twice, go ahead.",
	})
	survivor.ok("/resume", map[string]any{"sessionId": session})
	survivor.waitFor(session, "failed")
	require.Len(t, claimants(t, log, session), 3, "a run, taken over, and the one that was resumed")

	return survivor.raw("/sessions/" + session + "/records?dead=1"), sessionState(survivor, session), true
}

func sessionState(d *daemon, session string) map[string]any {
	_, answer := d.get("/sessions/" + session + "/state")
	return answer["state"].(map[string]any)
}

// What `helixd dev` shows as demo-incident is what two nodes do today. With
// -record-incident it is recorded.
func TestTheDemoIncidentIsReal(t *testing.T) {
	testkit.Long(t)
	t.Parallel() // most of it is waiting
	records, played, inTime := incident(t)
	for began := time.Now(); !inTime; records, played, inTime = incident(t) {
		require.Less(t, time.Since(began), 2*time.Minute, "the sentence is always over")
	}
	if *recordIncident {
		require.NoError(t, os.WriteFile(incidentFile, records, 0o644))
		return // the daemon that was built holds the one before
	}
	embedded, err := os.ReadFile(incidentFile)
	require.NoError(t, err)
	struck := 0
	for line := range bytes.Lines(embedded) {
		r, err := eventlog.ParseRecord(bytes.TrimSpace(line))
		require.NoError(t, err)
		if r.Type == "truncated" {
			struck++
		}
	}
	require.Equal(t, 1, struck)

	d := newDaemon(t, "dev", "--data-dir", filepath.Join(t.TempDir(), "data"), "--nats-listen", freeAddress(t))
	d.start()
	shown := sessionState(d, "demo-incident")
	require.JSONEq(t, outcome(t, played), outcome(t, shown))
	require.Equal(t, "failed", shown["status"])
}

// The demo session is imported once: its owner may erase it, and has none beside
// their own agents.
func TestDevImportsTheDemoIncidentOnce(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	dir := t.TempDir()
	d := newDaemon(t, "dev", "--data-dir", filepath.Join(dir, "data"), "--nats-listen", freeAddress(t))
	d.start()
	records := d.records("demo-incident")
	require.NotEmpty(t, records)
	require.EqualValues(t, 1, records[0].Sequence, "the documentation names its sequences")
	require.EqualValues(t, len(records), records[len(records)-1].Sequence)
	d.stop()
	d.start()
	require.Equal(t, content(records), content(d.records("demo-incident")))

	require.Contains(t, helixd(t, "erase", "demo-incident", "--yes", "--server", d.url), "demo-incident")
	d.stop()
	d.start()
	status, _ := d.get("/sessions/demo-incident")
	require.Equal(t, http.StatusNotFound, status)

	config := filepath.Join(dir, "helix.yaml")
	require.NoError(t, os.WriteFile(config, []byte("agents: {own: {model: {provider: scripted, script: [{text: Hello.}]}}}\n"), 0o600))
	own := newDaemon(t, "dev", "--config", config, "--data-dir", filepath.Join(dir, "own"), "--nats-listen", freeAddress(t))
	own.start()
	status, _ = own.get("/sessions/demo-incident")
	require.Equal(t, http.StatusNotFound, status)
}
