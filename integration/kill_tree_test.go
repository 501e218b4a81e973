package integration_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/integration/checker"
	"github.com/helixd/helixd/integration/testkit"
)

// treeKills is how often TestKillTree kills, unless HELIX_KILLS says otherwise.
const treeKills = 5

// TestKillTree kills the daemon (SIGKILL) at random moments of sessions with
// parallel tools, approvals, client tools and sub-agents, starts it again and
// continues: every session ends like one that was left alone.
func TestKillTree(t *testing.T) {
	testkit.Long(t)
	t.Parallel() // most of it is waiting
	n := testkit.Count(t, "HELIX_KILLS", treeKills)
	rnd := testkit.Random(t)

	w := newTreeWorld(t)
	d := newDaemon(t, "serve", "--config", w.config, "--data-dir", filepath.Join(t.TempDir(), "data"), "--allow-unauthenticated")
	d.start()
	began := time.Now()
	want := runTree(t, d, "calm", 0)
	length := time.Since(began)
	t.Logf("a session takes %s", length)
	require.Contains(t, want, "It is filed.")
	for i := range n {
		moment := 1 + time.Duration(rnd.Int64N(int64(length)))
		session := fmt.Sprintf("killed-%d", i)
		got := runTree(t, d, session, moment)
		require.Equal(t, want, strings.ReplaceAll(got, session, "calm"), "killed after %s", moment)
	}
	w.check(t)
}

func newTreeWorld(t *testing.T) *world {
	w := &world{keyOf: map[string]string{}}
	tool := httptest.NewServer(http.HandlerFunc(w.serveTool))
	t.Cleanup(tool.Close)
	w.config = configFile(t, checker.Agents(tool.URL, 2*time.Millisecond))
	return w
}

// runTree is a user with a session: it answers what the session waits for and
// resumes. After the moment, 0: never, the daemon is killed. It returns the
// outcome of all sessions of the tree.
func runTree(t *testing.T, d *daemon, session string, moment time.Duration) string {
	t.Helper()
	d.ok("/start", map[string]any{"sessionId": session, "agentType": "boss", "message": "Go."})
	began, look := time.Now(), time.NewTicker(3*time.Millisecond)
	defer look.Stop()
	for range look.C {
		require.Less(t, time.Since(began), clusterPatience)
		if moment > 0 && time.Since(began) >= moment {
			moment = 0
			d.kill()
			d.start()
		}
		_, now := d.get("/status?sessionId=" + session)
		switch {
		case now["status"] == "running" && now["isExecuting"] == false: // it was killed
			resumeTree(t, d, session)
		case now["status"] == "paused":
			for _, sub := range awaited(treeOf(d, session)) {
				sub["sessionId"] = session
				d.ok("/submit-tool-result", sub)
			}
			resumeTree(t, d, session)
		case now["status"] == "completed":
			var all []string
			tree := treeOf(d, session)
			for _, s := range sessionsOf(tree) {
				all = append(all, s["sessionId"].(string)+" "+outcome(t, s))
			}
			return strings.Join(all, "\n")
		default:
			require.Equal(t, "running", now["status"])
		}
	}
	return ""
}

func resumeTree(t *testing.T, d *daemon, session string) {
	t.Helper()
	status, answer := d.post("/resume", map[string]any{"sessionId": session})
	if status != http.StatusOK {
		require.Equal(t, "ALREADY_COMPLETED", answer["code"])
	}
}

func treeOf(d *daemon, session string) map[string]any {
	_, answer := d.get("/sessions/" + session + "/state")
	return answer["state"].(map[string]any)
}

// sessionsOf returns the states of the root and its sub-agents, in a fixed
// order.
func sessionsOf(tree map[string]any) []map[string]any {
	all := []map[string]any{tree}
	children, _ := tree["children"].(map[string]any)
	for _, id := range slices.Sorted(maps.Keys(children)) {
		all = append(all, children[id].(map[string]any))
	}
	return all
}

// awaited returns answers to what waits for a person.
func awaited(tree map[string]any) []map[string]any {
	var subs []map[string]any
	for _, s := range sessionsOf(tree) {
		turn, _ := s["turn"].(map[string]any)
		step, _ := turn["step"].(map[string]any)
		calls, _ := step["calls"].([]any)
		for _, c := range calls {
			call := c.(map[string]any)
			pending, _ := call["pending"].(map[string]any)
			if pending == nil || call["done"] == true || call["answer"] != nil {
				continue
			}
			switch id := call["toolCallId"].(string); pending["kind"] {
			case "client":
				subs = append(subs, map[string]any{"toolCallId": id, "kind": "client-tool-result", "result": "answered"})
			case "approval":
				subs = append(subs, map[string]any{"toolCallId": id, "kind": "approval-response", "approved": id == "p1"})
			}
		}
	}
	return subs
}
