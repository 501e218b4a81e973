package integration_test

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/integration/docs"
	"github.com/helixd/helixd/integration/testkit"
)

// durableKills is how often the daemon is killed while a producer writes.
const durableKills = 5

// TestDurableStreams runs the conformance suite of the Durable Streams protocol, and its client
// through kills, against the daemon. It needs node and what `make durable` installs.
func TestDurableStreams(t *testing.T) {
	t.Parallel()
	testkit.With(t, "HELIX_DURABLE", "durable")
	t.Run("conformance", func(t *testing.T) {
		d := newDurableDaemon(t)
		d.start()
		// Cases that wait for the end of a long poll, which is after 20 s, do not all have a timeout
		// of their own, and vitest's is 5 s.
		suite := exec.CommandContext(t.Context(), "node_modules/.bin/vitest", "run", "--testTimeout=25000", "suite.test.mjs")
		suite.Dir = "durable"
		suite.Env = append(os.Environ(), "NO_COLOR=1", "DURABLE_URL="+d.url)
		out, err := suite.CombinedOutput()
		require.NoError(t, err, "%s", out)
		t.Logf("%s", out)
	})
	t.Run("guide", runDurableGuide)
	t.Run("kills", func(t *testing.T) {
		d := newDurableDaemon(t)
		d.start()
		node := exec.CommandContext(t.Context(), "node", "kill.mjs", d.url)
		node.Dir, node.Stderr = "durable", os.Stderr
		out, err := node.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, node.Start())
		lines, kills := 0, 0
		for in := bufio.NewScanner(out); in.Scan(); {
			if !strings.HasPrefix(in.Text(), "written") {
				t.Log(in.Text())
				continue
			}
			if lines++; lines%20 == 0 && kills < durableKills {
				kills++
				d.kill()
				d.start()
			}
		}
		require.NoError(t, node.Wait(), "see above")
		require.Equal(t, durableKills, kills)
	})
}

// The program on the guide's page runs as it is there.
func runDurableGuide(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(docsFolder, "guides", "durable-streams.md"))
	require.NoError(t, err)
	page, err := docs.Parse("durable-streams.md", string(text))
	require.NoError(t, err)
	dir := t.TempDir()
	modules, err := filepath.Abs("durable/node_modules")
	require.NoError(t, err)
	require.NoError(t, os.Symlink(modules, filepath.Join(dir, "node_modules")))
	for _, b := range page.Blocks {
		if b.File == "count.mjs" {
			require.NoError(t, os.WriteFile(filepath.Join(dir, b.File), []byte(b.Text), 0o600))
		}
	}
	d := newDurableDaemon(t)
	d.start()
	node := exec.CommandContext(t.Context(), "node", "count.mjs", d.url)
	node.Dir = dir
	out, err := node.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "{ n: 1 }\n{ n: 2 }\n{ n: 3 }\nthe end, at ")
}

// A producer and a reader change from node to node, also when one is killed: nothing is lost or
// repeated.
func TestDurableStreamsOnNodes(t *testing.T) {
	testkit.Long(t)
	t.Parallel() // most of it is waiting
	nodes := newNodes(t, "HELIX_PROTOCOLS_DURABLE_STREAMS_ENABLED=true")
	startAll(nodes[:])
	// send repeats a request until a node knows what became of it.
	send := func(n *node, method, query, body string, headers ...string) (status int, next, text string) {
		for begin := time.Now(); ; {
			fields := append([]string{"Authorization", "Bearer t0ken", "Content-Type", "text/plain"}, headers...)
			resp, raw, err := askWhole(t.Context(), method, n.url+"/v1/stream/moved"+query, body, fields...)
			require.NoError(t, err)
			if resp.StatusCode != http.StatusServiceUnavailable {
				return resp.StatusCode, resp.Header.Get("Stream-Next-Offset"), string(raw)
			}
			require.Less(t, time.Since(begin), clusterPatience, "%s", raw)
		}
	}
	status, from, _ := send(nodes[0], "PUT", "", "")
	require.Equal(t, http.StatusCreated, status)
	written, read := "", ""
	alive := nodes[:]
	for i := range 30 {
		if i == 15 {
			nodes[1].kill()
			alive = []*node{nodes[0], nodes[2]}
		}
		line := fmt.Sprintf("line %d\n", i)
		written += line
		producer := []string{"Producer-Id", "p", "Producer-Epoch", "0", "Producer-Seq", fmt.Sprint(i)}
		status, _, text := send(alive[i%len(alive)], "POST", "", line, producer...)
		require.Contains(t, []int{http.StatusOK, http.StatusNoContent}, status, text) // 204: the first try was stored
		status, _, text = send(alive[(i+1)%len(alive)], "POST", "", line, producer...)
		require.Equal(t, http.StatusNoContent, status, text)
		status, next, text := send(alive[(i+1)%len(alive)], "GET", "?live=long-poll&offset="+from, "")
		require.Equal(t, http.StatusOK, status, text)
		read, from = read+text, next
	}
	require.Equal(t, written, read)
	_, _, whole := send(nodes[2], "GET", "", "")
	require.Equal(t, written, whole)
}

// A backup has streams, and elsewhere they are as they were: their bytes, offsets, producers and
// forks. Erased ones are in it no more, and no byte of them is in the data folder.
func TestDurableStreamsMove(t *testing.T) {
	testkit.Long(t)
	t.Parallel() // most of it is waiting
	dir := t.TempDir()
	config, data, restored := filepath.Join(dir, "helix.yaml"), filepath.Join(dir, "data"), filepath.Join(dir, "restored")
	require.NoError(t, os.WriteFile(config, []byte("protocols: {durableStreams: {enabled: true}}\n"), 0o600))
	serve := func(data string) *daemon {
		return newDaemon(t, "serve", "--config", config, "--data-dir", data, "--allow-unauthenticated")
	}
	d := serve(data)
	d.start()
	send := func(method, path, body string, headers ...string) (int, http.Header, string) {
		t.Helper()
		resp, raw, err := askWhole(t.Context(), method, d.url+"/v1/stream/"+path, body, append([]string{"Content-Type", "text/plain"}, headers...)...)
		require.NoError(t, err)
		return resp.StatusCode, resp.Header, string(raw)
	}
	want := func(status int, method, path, body string, headers ...string) http.Header {
		t.Helper()
		got, header, text := send(method, path, body, headers...)
		require.Equal(t, status, got, text)
		return header
	}
	producer := func(seq string) []string {
		return []string{"Producer-Id", secretText + "-writer", "Producer-Epoch", "0", "Producer-Seq", seq}
	}
	middle := want(201, "PUT", "kept", "one ").Get("Stream-Next-Offset")
	end := want(200, "POST", "kept", "two", "Producer-Id", "p", "Producer-Epoch", "0", "Producer-Seq", "0").Get("Stream-Next-Offset")
	want(201, "PUT", "fork", "2", "Stream-Forked-From", "/v1/stream/kept", "Stream-Fork-Offset", middle)
	want(201, "PUT", "erased", secretText)
	want(200, "POST", "erased", strings.Repeat(secretText, 20<<10), producer("0")...)
	want(200, "POST", "erased", secretText, producer("1")...)
	want(201, "PUT", "of-erased", secretText, "Stream-Forked-From", "/v1/stream/erased")
	require.NotEmpty(t, secretIn(t, data))
	want(204, "DELETE", "erased", "")
	require.NotEmpty(t, secretIn(t, data), "its fork needs it")
	want(204, "DELETE", "of-erased", "")
	gone(t, data)

	file := filepath.Join(dir, "backup")
	helixd(t, "backup", "--server", d.url, "--out", file)
	helixd(t, "verify", "--backup", file)
	d.stop()
	require.Empty(t, secretIn(t, data))
	helixd(t, "restore", file, "--data-dir", restored)
	helixd(t, "verify", "--data-dir", restored)
	d = serve(restored)
	d.start()
	for path, text := range map[string]string{"kept": "one two", "kept?offset=" + middle: "two", "fork": "one 2"} {
		status, _, got := send("GET", path, "")
		require.Equal(t, 200, status, got)
		require.Equal(t, text, got, path)
	}
	require.Equal(t, end, want(200, "HEAD", "kept", "").Get("Stream-Next-Offset"))
	want(204, "POST", "kept", "two", "Producer-Id", "p", "Producer-Epoch", "0", "Producer-Seq", "0") // it repeats
	want(200, "POST", "kept", "!", "Producer-Id", "p", "Producer-Epoch", "0", "Producer-Seq", "1")
	_, _, got := send("GET", "kept?offset="+end, "")
	require.Equal(t, "!", got)
	want(404, "GET", "erased", "")
	want(201, "PUT", "erased", "")
}

// newDurableDaemon returns a daemon that speaks the protocol.
func newDurableDaemon(t *testing.T) *daemon {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "helix.yaml")
	// The suite asks as a page of another origin does.
	require.NoError(t, os.WriteFile(config, []byte("protocols: {durableStreams: {enabled: true}}\ncors: {origins: ['https://example.com']}\n"), 0o600))
	return newDaemon(t, "serve", "--config", config, "--data-dir", filepath.Join(dir, "data"), "--allow-unauthenticated")
}
