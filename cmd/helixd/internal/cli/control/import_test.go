package control

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/internal/cli/inspect"
	"github.com/helixd/helixd/cmd/helixd/internal/clitest"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
)

// everything has the commands that export and those that import.
type everything struct {
	Control Commands         `embed:""`
	Inspect inspect.Commands `embed:""`
}

func payloads(t *testing.T, log eventlog.Log, session string) (all []string) {
	t.Helper()
	for r, err := range log.Read(t.Context(), session, 0, 0) {
		require.NoError(t, err)
		all = append(all, string(r.Payload))
	}
	return all
}

// A session moves from daemon to deployment to daemon; the commands fit each
// other by their output and input.
func TestExportAndImport(t *testing.T) {
	const session = "a b/../é."
	from, first := clitest.Serve[everything](t)
	_, err := first(clitest.ChunkLines(session, 2500), "append", session, "--end")
	require.NoError(t, err)
	odd := eventlog.Entry{Envelope: eventlog.Envelope{Kind: eventlog.KindFact, Type: "x", Agent: session}, Payload: []byte(" \x00\xff")}
	_, err = from.Append(t.Context(), session, 2501, []eventlog.Entry{odd})
	require.NoError(t, err)
	exported, err := first("", "export", session)
	require.NoError(t, err)
	require.Equal(t, 2502, strings.Count(exported, "\n"))
	shown, err := first("", "records", session, "--from", "2501")
	require.NoError(t, err)
	require.Contains(t, shown, `" \x00\xff"`, "a terminal obeys nothing of it")

	middle, second := clitest.OnNATS[everything](t)
	file := filepath.Join(t.TempDir(), "session.ndjson")
	require.NoError(t, os.WriteFile(file, []byte("\n"+exported), 0o600))
	for _, appended := range []int{2502, 0} { // doing it again changes nothing
		out, err := second("", "import", file, "--session", session, "--json")
		require.NoError(t, err)
		var done api.Imported
		require.NoError(t, json.Unmarshal([]byte(out), &done))
		require.Equal(t, session, done.SessionID)
		require.Equal(t, 2502, done.Records)
		require.Equal(t, appended, done.Appended)
		require.Equal(t, eventlog.DurabilityUnknown, done.Durability)
		require.NotEmpty(t, done.SHA256)
	}
	came := payloads(t, middle, session)
	require.Len(t, came, 2503)
	require.Equal(t, payloads(t, from, session), came[:2502])
	require.Contains(t, came[2502], `"session_imported"`, "who has done it comes after the records, once")

	exported, err = second("", "export", session)
	require.NoError(t, err)
	last, third := clitest.Serve[everything](t)
	said, err := third(exported, "import")
	require.Equal(t, session+": 2503 records, of which 2503 are new: sequences 1 to 2503\n", said)
	require.NoError(t, err)
	came = payloads(t, last, session)
	require.Len(t, came, 2504)
	require.Equal(t, payloads(t, from, session), came[:2502])
}

func TestImportSaysWhatIsWrong(t *testing.T) {
	_, helixd := clitest.Serve[everything](t)
	_, err := helixd(clitest.ChunkLines("s", 3), "append", "s")
	require.NoError(t, err)
	exported, err := helixd("", "export", "s")
	require.NoError(t, err)
	rows := strings.SplitAfter(exported, "\n")
	_, other := clitest.Serve[everything](t)
	for name, tc := range map[string]struct {
		in   string
		args []string
		want string
	}{
		"nothing":      {" \n\n", nil, "there are no records"},
		"no export":    {clitest.ChunkLines("s", 3), nil, "the first record is not what export writes: "},
		"another id":   {exported, []string{"--session", "t"}, `these are records of session "s": a session is imported under its own id only`},
		"a bad line":   {rows[0] + rows[1] + "junk", nil, "line 3 can't be imported, is not a JSON object (INVALID_REQUEST)"},
		"cut off":      {exported[:len(exported)-20], nil, "line 3 can't be imported"},
		"no such file": {"", []string{filepath.Join(t.TempDir(), "nowhere")}, "no such file"},
	} {
		_, err := other(tc.in, append([]string{"import"}, tc.args...)...)
		require.ErrorContains(t, err, tc.want, name)
	}
	_, err = helixd(exported, "import")
	require.ErrorContains(t, err, "the session exists, and differs from the import at line 1 (SESSION_EXISTS)")
	_, err = helixd("", "export", "nobody")
	require.ErrorContains(t, err, "NOT_FOUND")

	// A deployment that has no log yet gets none by an import.
	srv, err := embed.Start(t.Context(), embed.Options{DataDir: t.TempDir(), Listen: "127.0.0.1:0", User: "u", Password: "p"})
	require.NoError(t, err)
	defer srv.Stop()
	_, err = helixd(exported, "import", "--nats", strings.Replace(srv.ClientURL(), "nats://", "nats://u:p@", 1))
	require.ErrorContains(t, err, "stream HELIX_LOG_0")
}
