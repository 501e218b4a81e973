package integration_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/integration/testkit"
)

const secretText = "a-secret-nobody-may-find"

// secretChunks is a request's body of chunks that hold the secret.
func secretChunks(session string, n int) []byte {
	chunks := make([]any, n)
	for i := range chunks {
		chunks[i] = map[string]any{
			"type": "text_delta", "delta": fmt.Sprint(secretText, " ", i), "agentId": session, "agentType": "writer", "timestamp": 1, "step": 1,
		}
	}
	chunks = append(chunks, map[string]any{
		"type": "text_delta", "delta": strings.Repeat(secretText, 20<<10), "agentId": session, "agentType": "writer", "timestamp": 1, "step": 1,
	})
	raw, _ := json.Marshal(chunks)
	return raw
}

// send sends a request, with the token of the cluster's files.
func send(ctx context.Context, method, url string, body []byte) (status int, answer []byte, err error) {
	resp, answer, err := askWhole(ctx, method, url, string(body), "Authorization", "Bearer t0ken", "Content-Type", "application/json")
	if err != nil {
		return 0, nil, err
	}
	return resp.StatusCode, answer, nil
}

// writeSecret writes a session as an outside producer, and others' records between.
func writeSecret(t *testing.T, url, session string, times int) {
	t.Helper()
	for range times {
		for _, id := range []string{session, session + "-beside"} {
			body := secretChunks(id, 200)
			if id != session {
				body = bytes.ReplaceAll(secretChunks(id, 20), []byte(secretText), []byte("what others wrote"))
			}
			require.Eventually(t, func() bool {
				status, answer, err := send(t.Context(), http.MethodPost, url+"/sessions/"+id+"/chunks", body)
				require.NoError(t, err)
				require.Contains(t, []int{http.StatusOK, http.StatusServiceUnavailable}, status, "%s", answer)
				return status == http.StatusOK
			}, clusterPatience, 100*time.Millisecond)
		}
	}
}

// leaves calls for an erasure and is gone before there is an answer.
func leaves(t *testing.T, url, session string, after time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), after) // the moment is the test's input
	defer cancel()
	_, _, _ = send(ctx, http.MethodDelete, url+"/sessions/"+session, nil)
}

func secretIn(t *testing.T, dir string) []string {
	t.Helper()
	files, err := testkit.Scan(t.Context(), dir, secretText)
	require.NoError(t, err)
	return files
}

// gone waits until a node says that nothing of a session is left, and nobody erases it
// again for that.
func gone(t *testing.T, dirs ...string) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		for _, dir := range dirs {
			files, err := testkit.Scan(t.Context(), dir, secretText)
			assert.NoError(c, err)
			assert.Empty(c, files)
		}
	}, clusterPatience, 200*time.Millisecond)
}

// An erasure that has begun continues: its caller has left at once, or the daemon is
// killed in the middle of it. The erasures begin while those before them continue.
func TestAnErasureGoesOnByItself(t *testing.T) {
	testkit.Long(t)
	t.Parallel() // most of it is waiting
	w := newWorld(t)
	data := filepath.Join(t.TempDir(), "data")
	d := newDaemon(t, "serve", "--config", w.config, "--data-dir", data, "--allow-unauthenticated")
	d.start()
	moments := []time.Duration{5, 20, 60, 150}
	id := func(i int) string { return fmt.Sprint("s", i) }
	for i := range moments {
		writeSecret(t, d.url, id(i), 10)
	}
	require.NotEmpty(t, secretIn(t, data))
	for i, moment := range moments {
		leaves(t, d.url, id(i), moment*time.Millisecond)
		if i%2 == 1 {
			d.kill()
			d.start()
		}
		status, _ := d.get("/sessions/" + id(i))
		if status == http.StatusOK { // it had not begun
			status, answer, err := send(t.Context(), http.MethodDelete, d.url+"/sessions/"+id(i), nil)
			require.NoError(t, err)
			require.Contains(t, []int{http.StatusOK, http.StatusAccepted, http.StatusNotFound}, status, "%s", answer)
		}
	}
	gone(t, data)
	for i := range moments {
		status, answer := d.get("/sessions/" + id(i) + "-beside")
		require.Equal(t, http.StatusOK, status, "%v", answer)
	}
	d.stop()
	require.Empty(t, secretIn(t, data))
}

// Three nodes: `helixd erase` waits until each has searched its own files. If the node
// that erases dies, another ends it, and the dead one does its part when it is back.
func TestErasureOnThreeNodes(t *testing.T) {
	testkit.Long(t)
	t.Parallel() // most of it is waiting
	nodes := newNodes(t)
	startAll(nodes[:])
	writeSecret(t, nodes[0].url, "s", 3)
	ctx, cancel := context.WithTimeout(t.Context(), clusterPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program(t), "erase", "s", "--yes", "--wait", "--json", "--server", nodes[1].url, "--token", "t0ken")
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	began := time.Now()
	require.NoError(t, cmd.Run(), "%s", &said)
	t.Logf("erased in %s; %s", time.Since(began), &said)
	require.JSONEq(t, `{"sessionId":"s","pending":false,"forks":[]}`, out.String())
	for _, n := range nodes {
		require.Empty(t, secretIn(t, n.dir))
		require.Equal(t, http.StatusOK, n.patiently("/sessions/s-beside").StatusCode)
	}

	writeSecret(t, nodes[0].url, "other", 3)
	leaves(t, nodes[0].url, "other", 50*time.Millisecond)
	nodes[0].kill()
	if nodes[1].patiently("/sessions/other").StatusCode == http.StatusOK { // it had not begun
		require.Eventually(t, func() bool {
			status, _, err := send(t.Context(), http.MethodDelete, nodes[1].url+"/sessions/other", nil)
			return err == nil && status == http.StatusAccepted
		}, clusterPatience, 100*time.Millisecond)
	}
	gone(t, nodes[1].dir, nodes[2].dir)
	status, answer, err := send(t.Context(), http.MethodDelete, nodes[1].url+"/sessions/other", nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusAccepted, status, "%s", answer)
	require.Contains(t, string(answer), "node1", "it waits for the one that is down")
	nodes[0].launch()
	nodes[0].ready()
	gone(t, nodes[0].dir, nodes[1].dir, nodes[2].dir)
	require.Eventually(t, func() bool {
		status, _, err := send(t.Context(), http.MethodDelete, nodes[2].url+"/sessions/other", nil)
		return err == nil && (status == http.StatusOK || status == http.StatusNotFound)
	}, clusterPatience, 50*time.Millisecond)
}
