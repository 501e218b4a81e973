package integration_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/integration/testkit"
)

// Of two nodes one sweeps, on schedule: a session that waits for a person for
// longer than it may has failed. When that node has gone, the other one does.
func TestOneNodeOfAllSweeps(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	srv := embedtest.Server(t, embed.Options{Listen: "127.0.0.1:0", User: "u", Password: "p", SyncInterval: time.Second})
	file := configFile(t, `
nats: {url: "`+srv.ClientURL()+`", user: u, password: p}
sessions: {expireAfter: 1ms, sweepEvery: 1s}
retention: {maxAge: 1h, every: 1s}
drainTimeout: 1s
agents:
  careful:
    model: {provider: scripted, script: [{text: "I ask.", toolCalls: [{name: walk}]}, {text: "It was allowed."}]}
    tools:
      walk: {description: One step., inputSchema: {type: object}, http: {url: "http://127.0.0.1:1"}, requireApproval: true}
`)
	var nodes []*daemon
	for range 2 {
		nodes = append(nodes, newDaemon(t, "serve", "--config", file, "--allow-unauthenticated", "--data-dir", t.TempDir()))
	}
	did := func(d *daemon, job string) int {
		return strings.Count(d.logs.String(), `msg="scheduled job done" job=`+job)
	}
	expires := func(d *daemon, session string) {
		t.Helper()
		d.ok("/start", map[string]any{"sessionId": session, "agentType": "careful", "message": "go"})
		d.waitFor(session, "failed")
		_, answer := d.get("/sessions/" + session + "/state?at=" + fmt.Sprint(d.head(session)))
		require.Contains(t, fmt.Sprint(answer), "session_expired")
	}
	for _, d := range nodes {
		d.start()
	}
	expires(nodes[1], "s")
	for _, job := range []string{"retention", "sweep"} { // the one that began first has the lower name
		for begin := time.Now(); ; {
			first, second := did(nodes[0], job), did(nodes[1], job)
			require.Eventually(t, func() bool { return did(nodes[0], job) >= first+3 }, 2*time.Minute, 20*time.Millisecond, job)
			if did(nodes[1], job) == second {
				break
			}
			// There are moments in which it has not heard of the other.
			require.Less(t, time.Since(begin), 2*time.Minute, "%s: both do it", job)
		}
	}
	nodes[0].stop()
	expires(nodes[1], "t")
	require.Eventually(t, func() bool { return did(nodes[1], "sweep") > 0 }, 2*time.Minute, 20*time.Millisecond) // said when all is swept
}

// head is a session's last sequence.
func (d *daemon) head(session string) uint64 {
	d.t.Helper()
	_, answer := d.get("/status?sessionId=" + session)
	n, ok := answer["latestSequence"].(float64)
	require.True(d.t, ok, "%v", answer)
	return uint64(n)
}
