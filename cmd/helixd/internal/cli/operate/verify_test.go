package operate

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/internal/clitest"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog/integrity"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/integration/testkit"
)

// runVerify runs the command and returns what it prints and its exit code.
func runVerify(t *testing.T, ctx context.Context, args ...string) (string, int, error) {
	t.Helper()
	var out bytes.Buffer
	err := clitest.RunIn[Commands](t, &flags.Process{Ctx: ctx, Stdout: &out}, append([]string{"verify"}, args...)...)
	if err == nil {
		return out.String(), 0, nil
	}
	return out.String(), flags.ExitCode(err), err
}

// report is what --json prints.
type report struct {
	Problems, Notes   []integrity.Finding
	Sessions, Records int
	Error             string
}

func verifyJSON(t *testing.T, args ...string) (r report, code int) {
	t.Helper()
	out, code, _ := runVerify(t, t.Context(), append(args, "--json")...)
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&r), out)
	require.NotNil(t, r.Problems)
	require.NotNil(t, r.Notes)
	return r, code
}

// contentOf returns all files below a folder but the lock.
func contentOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "helixd.lock" {
			return err
		}
		b, err := os.ReadFile(path)
		files[path] = string(b)
		return err
	}))
	return files
}

func blockOf(t *testing.T, dataDir, stream string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dataDir, "jetstream/jetstream/*/streams", stream, "msgs/1.blk"))
	require.NoError(t, err)
	require.Len(t, paths, 1)
	return paths[0]
}

// flip changes a bit at a text in a file.
func flip(t *testing.T, path, at string) {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	i := bytes.Index(b, []byte(at))
	require.GreaterOrEqual(t, i, 0)
	b[i] ^= 1
	require.NoError(t, os.WriteFile(path, b, 0o640))
}

func TestVerifyAHealthyStore(t *testing.T) {
	dir := clitest.Stored(t, func(srv *embed.Server, _ *jetstream.Log) {
		out, code, err := runVerify(t, t.Context(), "--nats", srv.ClientURL())
		require.NoError(t, err, out)
		require.Zero(t, code)
		require.Equal(t, "2 sessions, 40 records: 0 problems, 0 notes\n", out)
	})
	blocks := blockOf(t, dir, "HELIX_LOG_0")
	before, err := os.ReadFile(blocks)
	require.NoError(t, err)
	out, code, err := runVerify(t, t.Context(), "--data-dir", dir)
	require.NoError(t, err)
	require.Zero(t, code)
	require.Equal(t, "2 sessions, 40 records: 0 problems, 0 notes\n", out)
	r, code := verifyJSON(t, "a b", "--data-dir", dir)
	require.Zero(t, code)
	require.Equal(t, report{Problems: []integrity.Finding{}, Notes: []integrity.Finding{}, Sessions: 1, Records: 20}, r)
	after, err := os.ReadFile(blocks)
	require.NoError(t, err)
	require.Equal(t, before, after)
}

func TestVerifyNamesAFlippedBit(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	dir := clitest.Stored(t, nil)
	flip(t, blockOf(t, dir, "HELIX_LOG_0"), "text 17") // not sealed
	before := contentOf(t, dir)
	r, code := verifyJSON(t, "--data-dir", dir)
	require.Equal(t, 2, code)
	require.Equal(t, []integrity.Finding{
		{Code: integrity.FoundBlock, Session: "a b", Sequence: 18, Detail: r.Problems[0].Detail},
		{Code: integrity.FoundGap, Session: "a b", Sequence: 18, Detail: r.Problems[1].Detail},
	}, r.Problems)
	require.Contains(t, r.Problems[0].Detail, "message 18 of stream HELIX_LOG_0: the checksum is wrong")
	require.Equal(t, 2, r.Sessions)
	require.Equal(t, 39, r.Records)
	require.Equal(t, before, contentOf(t, dir), "nothing is changed, and nothing is cut off")

	out, code, err := runVerify(t, t.Context(), "--data-dir", dir)
	require.ErrorIs(t, err, flags.ErrDamage)
	require.Equal(t, 2, code)
	lines := strings.Split(out, "\n")
	require.True(t, strings.HasPrefix(lines[0], `block_damaged session "a b" sequence 18: `), lines[0])
	require.True(t, strings.HasPrefix(lines[1], `gap session "a b" sequence 18: `), lines[1])
	require.Contains(t, out, "2 sessions, 39 records: 2 problems")
}

// TestVerifyFindsAFlippedBitInEveryStream, also in what would make a server
// run out of memory.
func TestVerifyFindsAFlippedBitInEveryStream(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	dir := clitest.Stored(t, nil)
	healthy := t.TempDir()
	require.NoError(t, os.CopyFS(healthy, os.DirFS(dir)))
	for stream, at := range map[string]string{
		"HELIX_LOG_0": "helix.log.0.c", "HELIX_SEG_0": "helix.seg.0.c", "HELIX_BLOBS": "helix.blob.0.c", "HELIX_SNAP_0": "helix.snap.0.c",
	} {
		for _, offset := range []int{-22, -11, -3, 3, 120} { // length, sequence, subject's length, subject, payload
			require.NoError(t, os.RemoveAll(dir))
			require.NoError(t, os.CopyFS(dir, os.DirFS(healthy)))
			path := blockOf(t, dir, stream)
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			b[bytes.Index(b, []byte(at))+offset] ^= 0x10
			require.NoError(t, os.WriteFile(path, b, 0o640))
			r, code := verifyJSON(t, "--data-dir", dir)
			require.Equal(t, 2, code, "%s %d", stream, offset)
			require.Equal(t, integrity.FoundBlock, r.Problems[0].Code)
		}
	}
}

func TestVerifyGoesOnBesideDamagedSettings(t *testing.T) {
	dir := clitest.Stored(t, nil)
	flip(t, filepath.Join(filepath.Dir(blockOf(t, dir, "HELIX_LOG_0")), "../meta.inf"), "helix.log")
	r, code := verifyJSON(t, "--data-dir", dir)
	require.Equal(t, 2, code)
	require.Contains(t, r.Problems[0].Detail, "settings is wrong")
	require.Equal(t, integrity.FoundStore, r.Problems[len(r.Problems)-1].Code)
}

func TestVerifyFindsSavedFoldsOfALostSession(t *testing.T) {
	dir := clitest.Stored(t, func(srv *embed.Server, log *jetstream.Log) {
		_, err := log.Erase(t.Context(), "c") // the log alone
		require.NoError(t, err)
	})
	r, code := verifyJSON(t, "--data-dir", dir)
	require.Equal(t, 2, code)
	require.Len(t, r.Problems, 1)
	require.Equal(t, integrity.FoundEndLost, r.Problems[0].Code)
	require.Equal(t, "c", r.Problems[0].Session)
}

func TestVerifyThatCantRun(t *testing.T) {
	dir := clitest.Stored(t, func(srv *embed.Server, _ *jetstream.Log) {
		r, code := verifyJSON(t, "nobody", "--nats", srv.ClientURL())
		require.Equal(t, 2, code)
		require.Equal(t, integrity.FoundSessionMissing, r.Problems[0].Code)
	})
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no deployment":       {[]string{"--nats", "nats://127.0.0.1:1"}, "nats: "},
		"no data":             {[]string{"--data-dir", filepath.Join(dir, "nowhere")}, "holds no JetStream data"},
		"an id that can't be": {[]string{"", "--data-dir", dir}, "session"},
	} {
		out, code, err := runVerify(t, t.Context(), tc.args...)
		require.ErrorContains(t, err, tc.want, name)
		require.Equal(t, 1, code, name)
		require.Empty(t, out, name)
	}
	require.NoDirExists(t, filepath.Join(dir, "nowhere"))
	out, _, err := runVerify(t, t.Context())
	require.ErrorContains(t, err, "--nats or --data-dir is needed", "an invalid command line")
	require.Empty(t, out)

	srv, err := embed.Start(t.Context(), embed.Options{DataDir: filepath.Join(dir, "jetstream")})
	require.NoError(t, err)
	_, code, err := runVerify(t, t.Context(), "--data-dir", dir) // while a server runs on it
	srv.Stop()
	require.Equal(t, 1, code)
	require.ErrorContains(t, err, "in use by another server: stop the daemon, or verify its streams with --nats")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, code, err = runVerify(t, ctx, "--data-dir", dir)
	require.Equal(t, 1, code)
	require.NotErrorIs(t, err, context.Canceled, "which main takes for a good end")
	r, code := verifyJSON(t, "--nats", "nats://127.0.0.1:1")
	require.Equal(t, 1, code)
	require.NotEmpty(t, r.Error)
}
