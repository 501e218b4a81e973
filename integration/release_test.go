package integration_test

import (
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/version"
	"github.com/helixd/helixd/integration/deployment"
	"github.com/helixd/helixd/integration/testkit"
)

// TestReleases opens, verifies and continues what each released version has left, and
// restores its backup.
func TestReleases(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	for _, r := range releases(t) {
		t.Run(r.version+" folder", func(t *testing.T) {
			t.Parallel()
			r := r.unpack(t)
			data := filepath.Join(r.dir, "data")
			marks := r.marks()
			helixd(t, "verify", "--data-dir", data)
			require.Equal(t, marks, r.marks(), "verify does not raise the format: the version that wrote the folder may continue")
			r.readsFiles()
			d := r.daemon("", "data")
			d.start()
			r.check(d)
			r.continues(d)
			r.hasFiles(d)
			d.stop()
			require.Equal(t, marks["subscribers.nk"], r.marks()["subscribers.nk"], "rights that were issued stay valid")
			helixd(t, "verify", "--data-dir", data)
		})
		t.Run(r.version+" backup", func(t *testing.T) {
			t.Parallel()
			r := r.unpack(t)
			file, to := filepath.Join(r.dir, "backup"), filepath.Join(r.dir, "restored")
			helixd(t, "verify", "--backup", file)
			helixd(t, "restore", file, "--data-dir", to)
			d := r.daemon("", "restored")
			d.start()
			r.check(d)
			r.continues(d)
			d.stop()
			helixd(t, "verify", "--data-dir", to)
		})
	}
}

// marks are the files of the data folder that say whose it is.
func (r release) marks() map[string]string {
	marks := map[string]string{}
	for _, name := range []string{"jetstream/format", "subscribers.nk"} {
		raw, err := os.ReadFile(filepath.Join(r.dir, "data", filepath.FromSlash(name)))
		if err == nil {
			marks[name] = string(raw)
		}
	}
	return marks
}

// check compares what a daemon answers with what the release has answered. Sessions may have continued
// since: the records are still their beginning, and the state is that of the moment.
func (r release) check(d *daemon) {
	r.t.Helper()
	for session, want := range r.want {
		head := want.State["head"]
		require.NotNil(r.t, head, session)
		status, answer := d.get(fmt.Sprintf("/sessions/%s/state?at=%.0f", session, head))
		require.Equal(r.t, http.StatusOK, status, "%s: %v", session, answer)
		require.Empty(r.t, missing("", want.State, answer["state"]), "%s at %.0f", session, head)
		if session == "trimmed" {
			status, answer = d.get("/sessions/trimmed/records")
			require.Equal(r.t, http.StatusGone, status, "%v", answer)
			continue
		}
		require.Empty(r.t, missing("", untimed(want.Records), untimed(d.lines(session))), session)
	}
	status, _ := d.get("/sessions/erased")
	require.Equal(r.t, http.StatusNotFound, status)
	listed := d.listed()
	require.GreaterOrEqual(r.t, listed["total"], float64(len(r.want)))
	require.Eventually(r.t, func() bool {
		_, found := d.get("/memories?scope=user&id=ada&q=green+tea")
		return missing("", map[string]any{"current": true, "items": []any{map[string]any{"content": "Ada drinks green tea without sugar."}}}, found) == ""
	}, time.Minute, 10*time.Millisecond)
	_, found := d.get("/memories?scope=user&id=bob")
	require.Contains(r.t, fmt.Sprint(found["items"]), "Bob has a dog.")
}

// untimed are records without the time of storage: a sealed one may have that of its
// acknowledgement.
func untimed(records []map[string]any) any {
	all := make([]any, len(records))
	for i, record := range records {
		record = maps.Clone(record)
		delete(record, "time")
		all[i] = record
	}
	return all
}

// continues has everything continue that was under way or waited.
func (r release) continues(d *daemon) {
	t := r.t
	t.Helper()
	d.waitFor("slow", "completed") // by itself
	require.Contains(t, d.seen("slow").State["output"], "which is here")
	answers := map[string]map[string]any{
		"deleter": {"kind": "approval-response", "toolCallId": "d1", "approved": true},
		"fork":    {"kind": "approval-response", "toolCallId": "d1", "approved": false},
		"asker":   {"kind": "client-tool-result", "toolCallId": "a1", "result": "me"},
	}
	for session, answer := range answers {
		answer["sessionId"] = session
		require.Equal(t, "accepted", d.ok("/submit-tool-result", answer)["status"], session)
		d.ok("/resume", map[string]any{"sessionId": session})
		d.waitFor(session, "completed")
	}
	for _, agent := range []string{"worker", "boss"} {
		d.turn(agent)
		todaysCommand(t, "replay", agent, "--verify", "--config", filepath.Join(r.dir, "helix.yaml"), "--server", d.url)
	}
	head := r.want["stream"].State["head"]
	require.Equal(t, head, d.chunks("stream", "k2", "three ")["lastSequence"], "it was appended before")
	require.Greater(t, d.chunks("stream", "k3", "four ")["lastSequence"], head)
	d.chunks("trimmed", "t9", "three ")
	for i := range 4 {
		d.chunks(fmt.Sprint("grown-", i), "k2", "more")
	}
	d.ok("/memories", map[string]any{"scope": "user", "id": "bob", "content": "Bob has a cat, too."})
	d.subscribed("stream", map[string]any{})
	d.ok("/retention", map[string]any{"purgeOlderThan": "1ns"})
	require.Contains(t, fmt.Sprint(d.lines("stream")), "four ")
}

// todaysCommand runs a command of today's program with the environment of releaseConfig.
func todaysCommand(t *testing.T, args ...string) {
	t.Helper()
	releasedCommand(t, program(t), args...)
}

// readsFiles changes the agents with a workspace: they read the files that they have
// written before.
func (r release) readsFiles() {
	file := filepath.Join(r.dir, "helix.yaml")
	raw, err := os.ReadFile(file)
	require.NoError(r.t, err)
	text := string(raw)
	for _, written := range []string{`{path: plan.txt, content: "walls, roof\n"}`, `{path: list.txt, content: "nails\n"}`} {
		path, _, _ := strings.Cut(written, ",")
		require.Contains(r.t, text, written)
		text = strings.ReplaceAll(text, "workspace_write_file, arguments: "+written, "workspace_read_file, arguments: "+path+"}")
	}
	require.NoError(r.t, os.WriteFile(file, []byte(text), 0o600))
}

// hasFiles reads the files of workspaces.
func (r release) hasFiles(d *daemon) {
	for agent, content := range map[string]string{"planner": "walls, roof", "carpenter": "nails"} {
		d.turn(agent)
		results := d.results(agent)
		require.Contains(r.t, results[len(results)-1], content, agent)
	}
}

// contents returns the content of all files of a folder.
func contents(t *testing.T, dir string) map[string]string {
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		all[path] = string(raw)
		return err
	}))
	return all
}

// raise marks a data folder as one of a later format.
func raise(t *testing.T, dataDir string) {
	nc, stop := serverOf(t, dataDir)
	defer stop()
	js, err := natsjs.New(nc)
	require.NoError(t, err)
	for _, name := range []string{"HELIX_LOG_0", "HELIX_SEG_0", "HELIX_BLOBS", "HELIX_LOG_1", "HELIX_SEG_1"} {
		s, err := js.Stream(t.Context(), name)
		require.NoError(t, err)
		c := s.CachedInfo().Config
		numbers, _, _ := strings.Cut(c.Metadata["helix.partitions"], " ")
		c.Metadata["helix.partitions"], c.Metadata["helix.helixd"] = fmt.Sprint(numbers, " v", version.Format+1), "v9.8.7"
		_, err = js.UpdateStream(t.Context(), c)
		require.NoError(t, err)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dataDir, "jetstream", "format"), fmt.Appendf(nil, `{"format":%d,"helixd":"v9.8.7"}`, version.Format+1), 0o600))
}

// TestALaterFolderIsRefused by every command that opens a folder, which changes no byte of
// it.
func TestALaterFolderIsRefused(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	r := releases(t)[0].unpack(t)
	data := filepath.Join(r.dir, "data")
	raise(t, data)
	require.NoError(t, os.Remove(filepath.Join(data, "subscribers.nk")), "it would be made again")
	before := contents(t, data)
	for _, args := range [][]string{
		{"serve", "--config", "helix.yaml", "--listen", "127.0.0.1:0"},
		{"dev", "--data-dir", "data", "--listen", "127.0.0.1:0"},
		{"verify", "--data-dir", "data"},
		{"restore", "backup", "--data-dir", "data"},
		{"doctor", "--config", "helix.yaml"},
	} {
		cmd := exec.CommandContext(t.Context(), program(t), args...)
		cmd.Dir, cmd.Env = r.dir, append(os.Environ(), "TOOL_URL=http://127.0.0.1:1", "HELIX_NATS_LISTEN="+freeAddress(t))
		out, err := cmd.CombinedOutput()
		require.Error(t, err, "%v: %s", args, out)
		require.Contains(t, string(out), fmt.Sprintf("has format %d, written by helixd v9.8.7; this is helixd", version.Format+1), "%v", args)
		require.Equal(t, before, contents(t, data), "%v changes nothing", args)
	}
}

// TestUpgrade goes to today's version and back to the last one with the same folder, and
// gives each version the other's backup. It builds the last version.
func TestUpgrade(t *testing.T) {
	if os.Getenv("HELIX_UPGRADE") == "" {
		t.Skip("only with HELIX_UPGRADE: it builds an earlier version")
	}
	t.Parallel()
	all := releases(t)
	last := all[len(all)-1]
	old, err := deployment.Released(t.Context(), last.commit, "v"+last.version)
	require.NoError(t, err)
	today := program(t)

	t.Run("and back", func(t *testing.T) {
		t.Parallel()
		r := last.unpack(t)
		data := filepath.Join(r.dir, "data")
		file, to := filepath.Join(r.dir, "later.backup"), filepath.Join(r.dir, "restored")
		for i, path := range []string{today, old, today, old} {
			d := r.daemon(path, "data")
			d.start()
			r.check(d)
			if i == 0 {
				r.continues(d)
				releasedCommand(t, path, "backup", "--server", d.url, "--out", file)
			}
			for _, agent := range []string{"worker", "boss", "planner", "waiter"} {
				d.turn(agent)
			}
			d.runs(fmt.Sprint("new-", i), "deleter", "ada", "paused")
			if i > 0 { // what the other version has left waits
				session := fmt.Sprint("new-", i-1)
				d.ok("/submit-tool-result", map[string]any{"sessionId": session, "kind": "approval-response", "toolCallId": "d1", "approved": true})
				d.ok("/resume", map[string]any{"sessionId": session})
				d.waitFor(session, "completed")
				require.Greater(t, d.chunks("stream", fmt.Sprint("b", i), "more ")["lastSequence"], r.want["stream"].State["head"])
				head := d.seen("stream").State["head"]
				require.Equal(t, head, d.chunks("stream", fmt.Sprint("b", i), "more ")["lastSequence"], "it was appended before")
			}
			if i%2 == 0 {
				d.stop()
			} else {
				d.kill()
			}
			for _, verifies := range []string{old, today} {
				releasedCommand(t, verifies, "verify", "--data-dir", data)
			}
		}
		releasedCommand(t, old, "verify", "--backup", file)
		releasedCommand(t, old, "restore", file, "--data-dir", to)
		releasedCommand(t, old, "verify", "--data-dir", to)
		d := r.daemon(old, "restored")
		d.start()
		r.check(d)
		d.stop()
	})

	t.Run("not back from a later format", func(t *testing.T) {
		t.Parallel()
		r := last.unpack(t)
		data := filepath.Join(r.dir, "data")
		raise(t, data)
		messages := func() map[string]string { // all of the log, of folds and of workspaces
			all := contents(t, data)
			maps.DeleteFunc(all, func(path, _ string) bool { return filepath.Ext(path) != ".blk" })
			return all
		}
		before := messages()
		d := r.daemon(old, "data")
		cmd := exec.CommandContext(t.Context(), old, d.args...)
		cmd.Env = append(os.Environ(), d.env...)
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		require.Regexp(t, `has format \d+, written by helixd v9.8.7|HELIX_LOG_0 is not of a helixd log`, string(out), "0.1.0 says the latter")
		require.Equal(t, before, messages(), "no message was written")
	})
}
