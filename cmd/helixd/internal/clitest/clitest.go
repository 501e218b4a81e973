// Package clitest runs helixd's commands in tests, with the servers that they need.
package clitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/readmodel"
	"github.com/helixd/helixd/snapshot"
	foldsjs "github.com/helixd/helixd/snapshot/jetstream"
)

// RunIn runs a command line in a process. C is the struct of the commands.
func RunIn[C any](t *testing.T, p *flags.Process, args ...string) error {
	t.Helper()
	parser, err := kong.New(new(C), source.Sessions)
	require.NoError(t, err)
	k, err := parser.Parse(args)
	if err != nil {
		return err
	}
	return k.Run(p)
}

// Run runs a command line and returns what it prints.
func Run[C any](t *testing.T, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	err = RunIn[C](t, &flags.Process{
		Ctx: t.Context(), Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs, Log: slog.New(slog.DiscardHandler),
	}, args...)
	return out.String(), errs.String(), err
}

// Serve serves a log over HTTP and returns a way to run commands against it.
func Serve[C any](t *testing.T, agents ...agentloop.Agent) (log eventlog.Log, helixd func(stdin string, args ...string) (string, error)) {
	t.Helper()
	log, run := Daemon[C](t, agents...)
	return log, func(stdin string, args ...string) (string, error) {
		out, _, err := run(stdin, args...)
		return out, err
	}
}

// Daemon is Serve with what commands print to the standard error.
func Daemon[C any](t *testing.T, agents ...agentloop.Agent) (log eventlog.Log, helixd func(stdin string, args ...string) (stdout, stderr string, err error)) {
	t.Helper()
	log = memory.New()
	loop, err := engine.New(log, agents, nil)
	require.NoError(t, err)
	t.Cleanup(loop.Stop)
	api, err := httpapi.New(httpapi.Options{
		Log: log, Loop: loop, Auth: auth.BearerTokens([]auth.Token{{Token: "t", Operations: []string{"*"}, Sessions: []string{"*"}}}),
	})
	require.NoError(t, err)
	srv := httptest.NewServer(api)
	t.Cleanup(srv.Close)
	return log, func(stdin string, args ...string) (string, string, error) {
		return Run[C](t, stdin, append(args, "--server", srv.URL+"/", "--token", "t")...)
	}
}

// OnNATS returns the log of a NATS deployment, and a way to run commands against it
// without a daemon.
func OnNATS[C any](t *testing.T) (log eventlog.Log, helixd func(stdin string, args ...string) (string, error)) {
	t.Helper()
	url, nc := NATS(t)
	jet, err := jetstream.Open(t.Context(), nc, &jetstream.Options{Partitions: 4})
	require.NoError(t, err)
	t.Cleanup(func() { jet.Close() })
	return jet, func(stdin string, args ...string) (string, error) {
		out, _, err := Run[C](t, stdin, append(args, "--nats", url)...)
		return out, err
	}
}

// NATS is a NATS deployment that everyone who knows its URL may use.
func NATS(t *testing.T) (url string, nc *nats.Conn) {
	t.Helper()
	srv, nc := embedtest.Start(t, embed.Options{Listen: "127.0.0.1:0", User: "u", Password: "secret"})
	return strings.Replace(srv.ClientURL(), "nats://", "nats://u:secret@", 1), nc
}

// Ready answers GET /readyz as a daemon would, and returns its URL.
func Ready(t *testing.T, status int, r api.Readiness) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// Config writes a helix.yaml of a daemon on a free port, and returns its path.
func Config(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "helix.yaml")
	text = "listen: 127.0.0.1:0\ndurability: interval=1s\ndataDir: " + filepath.Join(dir, "data") + "\n" + text
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// Stored fills a data folder with two sessions that have segments, a blob and
// saved folds, lets use look at it while its server runs, and stops that.
func Stored(t *testing.T, use func(nc *embed.Server, log *jetstream.Log)) (dataDir string) {
	t.Helper()
	ctx := t.Context()
	dataDir = t.TempDir()
	srv, err := embed.Start(ctx, embed.Options{
		DataDir: filepath.Join(dataDir, "jetstream"), SyncInterval: time.Minute, Listen: "127.0.0.1:0", AllowRead: true,
	})
	require.NoError(t, err)
	defer srv.Stop()
	nc, err := srv.Connect()
	require.NoError(t, err)
	defer nc.Close()
	log, err := jetstream.Open(ctx, nc, nil)
	require.NoError(t, err)
	defer log.Close()
	folds, err := foldsjs.Open(ctx, nc, layout.Hashed(1), 1)
	require.NoError(t, err)
	states := snapshot.New(log, &snapshot.StoreOptions{Folds: folds, SaveEvery: 10})
	for _, session := range []string{"a b", "c"} {
		head := uint64(0)
		for i := range 20 {
			text := fmt.Sprint("text ", i)
			if i == 5 {
				text = strings.Repeat("large", 100_000)
			}
			head, err = eventlog.AppendOnce(ctx, log, session, fmt.Sprint("w", i), head, []eventlog.Entry{logtest.Text(session, text)})
			require.NoError(t, err)
			if i%7 == 0 {
				require.NoError(t, log.Seal(ctx, session))
			}
		}
		_, err = states.Head(ctx, session)
		require.NoError(t, err)
	}
	if use != nil {
		use(srv, log)
	}
	return dataDir
}

// Folded is the state of a session.
func Folded(t *testing.T, log eventlog.Log, session string) *projector.Tree {
	t.Helper()
	s := new(projector.Tree)
	for r, err := range log.Read(t.Context(), session, 0, 0) {
		require.NoError(t, err)
		projector.Apply(s, r)
	}
	return s
}

// ChunkLines are chunks of a session, with blank lines between them.
func ChunkLines(session string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"type":"text_delta","delta":"%d","agentId":%q,"agentType":"a","timestamp":1,"step":0}`+"\n\n", i, session)
	}
	return b.String()
}

// Current says that read models lack nothing.
var Current = readmodel.Fresh{Current: true}

// Listing is the page of a listing that has 9 items in all.
func Listing[T any](fresh readmodel.Fresh, items ...T) api.Listing[T] {
	return api.Listing[T]{Page: api.Page[T]{Items: items, Total: 9, HasMore: true}, Fresh: fresh}
}
