package integration_test

import (
	"archive/tar"
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/integration/deployment"
	"github.com/helixd/helixd/integration/testkit"
)

var (
	makeRelease   = flag.String("make-release", "", "write testdata/releases of this version, from -commit")
	releaseCommit = flag.String("commit", "HEAD", "the commit of -make-release")
)

const releasesDir = "testdata/releases"

// releaseConfig is the configuration of the data folders. What an older version accepted, a
// later one must, too.
const releaseConfig = `
dataDir: data
durability: interval=100ms
drainTimeout: 100ms
auth: {allowUnauthenticated: true}
nats: {subscribers: {ttl: 1h}}
memory: {embedder: {provider: local}}
prices: {scripted: {input: 3, output: 15}}
agents:
  worker:
    initialState: {seen: 0}
    model:
      provider: scripted
      script:
        - {reasoning: I look first., toolCalls: [{id: l1, name: look, arguments: {city: Paris}}, {id: l2, name: look, arguments: {city: Oslo}}]}
        - text: Both are grey.
    tools: &tools {look: {http: {url: "env:TOOL_URL"}}}
  deleter:
    model:
      provider: scripted
      script:
        - {text: May I?, toolCalls: [{id: d1, name: delete, arguments: {}}]}
        - text: It is done.
    tools: {delete: {http: {url: "env:TOOL_URL"}, requireApproval: true}}
  asker:
    model:
      provider: scripted
      script:
        - {text: Who is it?, toolCalls: [{id: a1, name: ask, arguments: {}}]}
        - text: Thank you.
    tools: {ask: {client: true}}
  boss:
    model:
      provider: scripted
      script:
        - toolCalls: [{id: s1, name: subagent__scout, arguments: {message: look there}}, {id: b1, name: companion__spawnAgent, arguments: {agent: helper, name: h, initialMessage: help}}]
        - text: All of it is done.
    subAgents: [scout]
    persistentAgents: [{agent: helper, mode: blocking}]
  scout:
    model:
      provider: scripted
      script:
        - toolCalls: [{id: l3, name: look, arguments: {city: Lyon}}]
        - toolCalls: [{id: f1, name: __finish__, arguments: {sum: 2}}]
    outputSchema: {type: object}
    tools: *tools
  helper: {model: {provider: scripted, script: [{text: I have helped.}]}}
  planner:
    workspace: {provider: objects}
    model:
      provider: scripted
      script:
        - toolCalls: [{name: workspace_write_file, arguments: {path: plan.txt, content: "walls, roof\n"}}]
        - text: That is the plan.
  carpenter:
    workspace: {provider: local, capabilities: [fs]}
    model:
      provider: scripted
      script:
        - toolCalls: [{name: workspace_write_file, arguments: {path: list.txt, content: "nails\n"}}]
        - text: I have a list.
  waiter:
    memory: {scope: user, recall: 3}
    model:
      provider: scripted
      script:
        - toolCalls: [{name: save_memory, arguments: {content: "Ada drinks green tea without sugar.", tags: [drinks]}}]
        - text: I will remember that.
  slow: {model: {provider: scripted, scriptDelay: 25ms, script: [{text: This answer takes so long that the daemon is stopped before the end of it and another version of helixd has to begin it again and to come to its end which is here}]}}
`

// release is a data folder and a backup that a version of helixd has left.
type release struct {
	t               *testing.T
	version, commit string
	dir             string // of data, backup, helix.yaml and want.json
	want            map[string]releasedSession
}

// releasedSession is what the version has answered of a session.
type releasedSession struct {
	Records []map[string]any
	State   map[string]any
	Status  string
}

// releases lists the versions of which there are folders.
func releases(t *testing.T) (all []release) {
	raw, err := os.ReadFile(filepath.Join(releasesDir, "list"))
	require.NoError(t, err)
	for line := range strings.Lines(string(raw)) {
		version, commit, _ := strings.Cut(strings.TrimSpace(line), " ")
		all = append(all, release{version: version, commit: commit})
	}
	require.NotEmpty(t, all)
	return all
}

// unpack returns the release with a copy of its files.
func (r release) unpack(t *testing.T) release {
	r.t, r.dir = t, t.TempDir()
	file, err := os.Open(filepath.Join(releasesDir, r.version+".tar.zst"))
	require.NoError(t, err)
	defer file.Close()
	packed, err := zstd.NewReader(file)
	require.NoError(t, err)
	defer packed.Close()
	for in := tar.NewReader(packed); ; {
		h, err := in.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		require.True(t, filepath.IsLocal(h.Name), h.Name)
		path := filepath.Join(r.dir, h.Name)
		if h.Typeflag == tar.TypeDir {
			require.NoError(t, os.MkdirAll(path, 0o700))
			continue
		}
		raw, err := io.ReadAll(in)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, raw, 0o600))
	}
	raw, err := os.ReadFile(filepath.Join(r.dir, "want.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &r.want))
	return r
}

// pack writes the release's files.
func (r release) pack() {
	t := r.t
	var out bytes.Buffer
	packed, err := zstd.NewWriter(&out, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	require.NoError(t, err)
	w := tar.NewWriter(packed)
	require.NoError(t, filepath.WalkDir(r.dir, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(r.dir, path)
		if err != nil || name == "." || name == filepath.Join("data", "readmodels.db-shm") {
			return err
		}
		if d.IsDir() {
			return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: filepath.ToSlash(name), Mode: 0o700})
		}
		raw, err := os.ReadFile(path)
		if err == nil {
			err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: filepath.ToSlash(name), Mode: 0o600, Size: int64(len(raw))})
		}
		if err == nil {
			_, err = w.Write(raw)
		}
		return err
	}))
	require.NoError(t, w.Close())
	require.NoError(t, packed.Close())
	require.NoError(t, os.WriteFile(filepath.Join(releasesDir, r.version+".tar.zst"), out.Bytes(), 0o600))
	t.Logf("%s: %d KiB", r.version, out.Len()>>10)
}

// daemon is helixd on the release's files; path is the program, empty: today's. dataDir is
// below the release's folder.
func (r release) daemon(path, dataDir string) *daemon {
	tool := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"result":{"sky":"grey"},"patches":[{"op":"add","path":"/seen","value":1}]}`)
	}))
	r.t.Cleanup(tool.Close)
	d := newDaemon(r.t, "serve", "--config", filepath.Join(r.dir, "helix.yaml"), "--data-dir", filepath.Join(r.dir, dataDir))
	d.path, d.env = path, []string{"TOOL_URL=" + tool.URL, "HELIX_NATS_LISTEN=" + freeAddress(r.t)}
	return d
}

// lines returns what a session's records are.
func (d *daemon) lines(session string) (all []map[string]any) {
	d.t.Helper()
	resp, err := client.Get(d.url + "/sessions/" + url.PathEscape(session) + "/records?dead=1")
	require.NoError(d.t, err)
	defer resp.Body.Close()
	require.Equal(d.t, http.StatusOK, resp.StatusCode)
	for in := bufio.NewReader(resp.Body); ; {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return all
		}
		require.NoError(d.t, err)
		var record map[string]any
		require.NoError(d.t, json.Unmarshal(line, &record), "%s", line)
		all = append(all, record)
	}
}

// seen is what the daemon answers of a session. If its history begins later, there are no records.
func (d *daemon) seen(session string) (s releasedSession) {
	d.t.Helper()
	status, answer := d.get("/sessions/" + session + "/state")
	require.Equal(d.t, http.StatusOK, status, "%s: %v", session, answer)
	s.State, _ = answer["state"].(map[string]any)
	_, answer = d.get("/status?sessionId=" + session)
	s.Status, _ = answer["status"].(string)
	if session != "trimmed" {
		s.Records = d.lines(session)
	}
	return s
}

// missing returns where got lacks something of want; it may have more. Empty: nowhere.
func missing(at string, want, got any) string {
	switch want := want.(type) {
	case map[string]any:
		has, ok := got.(map[string]any)
		if !ok {
			return at
		}
		for key, w := range want {
			if lacks := missing(at+"/"+key, w, has[key]); lacks != "" {
				return lacks
			}
		}
		return ""
	case []any:
		has, ok := got.([]any)
		if !ok || len(has) < len(want) {
			return at
		}
		for i, w := range want {
			if lacks := missing(fmt.Sprint(at, "/", i), w, has[i]); lacks != "" {
				return lacks
			}
		}
		return ""
	}
	if !reflect.DeepEqual(want, got) {
		return fmt.Sprintf("%s: %v, not %v", at, got, want)
	}
	return ""
}

// runs starts a run and waits for its status.
func (d *daemon) runs(session, agent, user, until string) {
	d.t.Helper()
	d.ok("/start", map[string]any{"sessionId": session, "agentType": agent, "userId": user, "message": "Go."})
	d.waitFor(session, until)
}

// turn begins a session's next turn and waits for its end.
func (d *daemon) turn(session string) {
	d.t.Helper()
	d.ok("/sessions/"+session+"/messages", map[string]any{"message": "Again."})
	d.waitFor(session, "completed")
}

// chunks appends texts of a producer with an idempotency key, and returns the answer.
func (d *daemon) chunks(session, key string, texts ...string) map[string]any {
	d.t.Helper()
	resp, err := ask(d.t.Context(), http.MethodPost, d.url+"/sessions/"+session+"/chunks", textLines(session, texts),
		"Content-Type", "application/x-ndjson", "Idempotency-Key", key)
	require.NoError(d.t, err)
	status, answer := d.answer(resp)
	require.Equal(d.t, http.StatusOK, status, "%v", answer)
	return answer
}

// TestMakeRelease makes what TestReleases opens: everything that a version stores, in a
// data folder and in a backup. See CONTRIBUTING.md.
func TestMakeRelease(t *testing.T) {
	if *makeRelease == "" {
		t.Skip("only with -args -make-release VERSION -commit COMMIT")
	}
	path, err := deployment.Released(t.Context(), *releaseCommit, "v"+*makeRelease)
	require.NoError(t, err)
	r := release{t: t, version: *makeRelease, dir: t.TempDir(), want: map[string]releasedSession{}}
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, "helix.yaml"), []byte(releaseConfig), 0o600))
	first := r.daemon(path, "first")
	first.start()
	first.chunks("trimmed", "t0", slices.Repeat([]string{"word "}, 650)...) // several segments
	firstBackup := filepath.Join(t.TempDir(), "backup")
	releasedCommand(t, path, "backup", "--server", first.url, "--out", firstBackup)
	first.stop()
	require.NoError(t, os.RemoveAll(filepath.Join(r.dir, "first")))
	// What was restored is in segments alone, which retention may remove at once.
	releasedCommand(t, path, "restore", firstBackup, "--data-dir", filepath.Join(r.dir, "data"))
	d := r.daemon(path, "data")
	d.start()
	require.Contains(t, d.ok("/retention", map[string]any{"dropOlderThan": "1ns"})["dropped"], "trimmed")
	for _, agent := range []string{"worker", "boss", "planner", "carpenter", "waiter"} {
		d.runs(agent, agent, "ada", "completed")
	}
	d.turn("worker")
	d.runs("deleter", "deleter", "ada", "paused")
	d.runs("asker", "asker", "bob", "paused")
	d.ok("/sessions/deleter/fork", map[string]any{"sessionId": "fork"})
	d.runs("rolled", "worker", "bob", "completed")
	records := d.lines("rolled")
	d.ok("/sessions/rolled/rollback", map[string]any{"sequence": records[len(records)/2]["sequence"]})
	d.chunks("stream", "k1", "one ", "two ")
	d.chunks("large", "k1", strings.Repeat("A payload over 256 KiB is stored in parts. ", 9000))
	d.chunks("ended", "k1", "It ends.")
	d.ok("/sessions/ended/end", map[string]any{})
	d.chunks("erased", "k1", "This is gone.")
	require.Contains(t, releasedCommand(t, path, "erase", "erased", "--yes", "--server", d.url), "erased")
	d.ok("/memories", map[string]any{"scope": "user", "id": "bob", "content": "Bob has a dog."})
	d.subscribed("stream", map[string]any{})
	status, answer := d.delete("/sessions/stream/subscriptions")
	require.Equal(t, http.StatusOK, status, "%v", answer)
	d.ok("/retention", map[string]any{"purgeOlderThan": "1ns"}) // it seals them
	d.chunks("stream", "k2", "three ")                          // a record after its segment
	d.stop()
	d.env = append(d.env, "HELIX_NATS_PARTITIONS=2")
	d.start() // it grows the log
	for i := range 4 {
		d.chunks(fmt.Sprint("grown-", i), "k1", "in one of two partitions")
	}
	var listed map[string]any
	require.Eventually(t, func() bool {
		_, listed = d.get("/sessions?limit=100")
		return listed["current"] == true
	}, time.Minute, 10*time.Millisecond)
	d.ok("/start", map[string]any{"sessionId": "slow", "agentType": "slow", "message": "Go."})
	d.waitFor("slow", "running")
	r.want["slow"] = d.seen("slow")
	for _, item := range listed["items"].([]any) {
		session := item.(map[string]any)["sessionId"].(string)
		r.want[session] = d.seen(session)
	}
	require.Len(t, r.want, 18)
	releasedCommand(t, path, "backup", "--server", d.url, "--out", filepath.Join(r.dir, "backup"))
	d.stop()
	releasedCommand(t, path, "verify", "--data-dir", filepath.Join(r.dir, "data"))
	raw, err := json.Marshal(r.want)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, "want.json"), raw, 0o600))
	r.pack()
}

// releasedCommand runs a command of a program with the environment of releaseConfig.
func releasedCommand(t *testing.T, path string, args ...string) string {
	t.Helper()
	testkit.Slow(t)
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = append(os.Environ(), "TOOL_URL=http://127.0.0.1:1")
	var failed bytes.Buffer
	cmd.Stderr = &failed
	out, err := cmd.Output()
	require.NoError(t, err, "%v: %s%s", args, out, &failed)
	return string(out)
}
