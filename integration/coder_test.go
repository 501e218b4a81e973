package integration_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/model/modeltest"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/jetstreamtest"
	"github.com/helixd/helixd/integration/testkit"
)

func write(path, content string) call {
	return call{"workspace_write_file", map[string]any{"path": path, "content": content}}
}

func edit(path, old, new string) call {
	return call{"workspace_edit_file", map[string]any{"path": path, "old": old, "new": new}}
}

func read(path string) call {
	return call{"workspace_read_file", map[string]any{"path": path}}
}

func list(path string) call {
	return call{"workspace_list_files", map[string]any{"path": path, "recursive": true}}
}

// last are the last results of a session.
func (d *daemon) last(session string, n int) []string {
	d.t.Helper()
	all := d.results(session)
	require.GreaterOrEqual(d.t, len(all), n)
	return all[len(all)-n:]
}

// A node is killed while its agent builds a house of files. Another node continues
// with them, the house is forked, and each fork becomes another one.
func TestAHouseOfFiles(t *testing.T) {
	testkit.Long(t)
	t.Parallel() // most of it is waiting
	c := newCluster(t)
	var once sync.Once
	thinking := make(chan struct{})
	model := newModel(t, func(c conversation) modeltest.Stream {
		answer := obedient(c)
		if _, answers := c.asked(); answers == 2 {
			once.Do(func() {
				answer = modeltest.Stream{Hang: true}
				close(thinking)
			})
		}
		return answer
	})
	file := configFile(t, `
nats: {url: "`+c.url()+`", replicas: 3, partitions: 1}
agents:
  builder:
    workspace: {provider: objects}
    model: {provider: openai, name: some-model, apiKey: none, baseURL: "`+model+`"}
`)
	var nodes []*daemon
	for range 2 {
		n := newDaemon(t, "serve", "--config", file, "--allow-unauthenticated")
		n.start()
		nodes = append(nodes, n)
	}

	// The builder has put up walls and a roof, and thinks about the next step when
	// its node is killed. At the other node it finds them.
	status, answer := nodes[0].insist(http.MethodPost, "/start", map[string]any{
		"sessionId": "house", "agentType": "builder",
		"message": oneByOne(write("house", "walls\n"), edit("house", "walls", "walls, roof"), read("house")),
	})
	require.Equal(t, http.StatusOK, status, "%s", answer)
	select {
	case <-thinking:
	case <-time.After(2 * time.Minute):
		require.Fail(t, "the model was not asked for a third step")
	}
	nodes[0].kill()
	nodes[1].waitFor("house", "completed")
	const house = `{"path":"house","content":"walls, roof\n","size":12}`
	require.Equal(t, house, nodes[1].last("house", 1)[0])
	require.Greater(t, len(claimants(t, jetstreamtest.Open(t, connect(t, c.url()), &jetstream.Options{Existing: true}), "house")), 1)

	// The killed node is back. Of the house as it is now there is one of brick and
	// one of wood, at a node each; and one of when it was walls only.
	nodes[0].start()
	fork := func(d *daemon, as, checkpoint string, then ...call) {
		t.Helper()
		body := map[string]any{"sessionId": as, "run": true, "message": oneByOne(then...)}
		if checkpoint != "" {
			body["checkpointId"] = checkpoint
		}
		status, answer := d.insist(http.MethodPost, "/sessions/house/fork", body)
		require.Less(t, status, 300, "%s", answer)
	}
	var page struct{ Items []struct{ ID string } }
	nodes[0].into("/sessions/house/checkpoints", &page)
	first := page.Items[0].ID
	fork(nodes[0], "brick", "", edit("house", "walls", "brick walls"), read("house"), list("."))
	fork(nodes[1], "wood", "", edit("house", "walls", "wooden walls"), write("shed/axe", "sharp\n"), read("house"), list("."))
	fork(nodes[1], "ruin", first, read("house"))
	nodes[0].say("house", "builder", "", oneByOne(read("house"), list(".")))
	for session, want := range map[string][]string{
		"house": {house, `{"path":".","entries":[{"name":"house","size":12}]}`},
		"brick": {`{"path":"house","content":"brick walls, roof\n","size":18}`, `{"path":".","entries":[{"name":"house","size":18}]}`},
		"wood": {
			`{"path":"house","content":"wooden walls, roof\n","size":19}`,
			`{"path":".","entries":[{"name":"house","size":19},{"name":"shed","dir":true},{"name":"shed/axe","size":6}]}`,
		},
		"ruin": {`{"path":"house","content":"walls\n","size":6}`},
	} {
		for _, n := range nodes {
			n.waitFor(session, "completed")
			require.Equal(t, want, n.last(session, len(want)), session)
			var described struct {
				Workspace struct{ ProviderID, Status string }
			}
			n.into("/workspace?sessionId="+session, &described)
			require.Equal(t, "objects", described.Workspace.ProviderID)
			require.Equal(t, "open", described.Workspace.Status)
		}
	}

	// The house is erased. Its forks stand, and are built on.
	require.Eventually(t, func() bool {
		status, _, _ := nodes[1].do(http.MethodDelete, "/sessions/house", "")
		return status == http.StatusOK || status == http.StatusAccepted // the servers' own logs are theirs
	}, 2*time.Minute, 10*time.Millisecond)
	nodes[0].say("wood", "builder", "", oneByOne(edit("house", "roof", "roof, chimney"), read("house"), read("shed/axe")))
	require.Equal(t, []string{
		`{"path":"house","content":"wooden walls, roof, chimney\n","size":28}`,
		`{"path":"shed/axe","content":"sharp\n","size":6}`,
	}, nodes[1].last("wood", 2))
	nodes[1].say("brick", "builder", "", oneByOne(read("house")))
	require.Equal(t, `{"path":"house","content":"brick walls, roof\n","size":18}`, nodes[0].last("brick", 1)[0])
}
