package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/logtest"
)

// command runs a command and returns what it prints.
func command(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var c cli
	parser, err := kong.New(&c)
	require.NoError(t, err)
	k, err := parser.Parse(args)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	err = k.Run(&flags.Process{Ctx: t.Context(), Stdout: &out, Log: slog.New(slog.DiscardHandler)})
	return out.String(), err
}

// natsServer is a NATS deployment that one who knows its URL may use.
func natsServer(t *testing.T) (url string, nc *nats.Conn) {
	t.Helper()
	srv, err := embed.Start(t.Context(), embed.Options{DataDir: t.TempDir(), Listen: "127.0.0.1:0", User: "u", Password: "secret"})
	require.NoError(t, err)
	t.Cleanup(srv.Stop)
	nc, err = srv.Connect()
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return strings.Replace(srv.ClientURL(), "nats://", "nats://u:secret@", 1), nc
}

// TestBackupOfNATS: from one deployment to another, with no daemon.
func TestBackupOfNATS(t *testing.T) {
	t.Parallel()
	from, nc := natsServer(t)
	log, err := jetstream.Open(t.Context(), nc, &jetstream.Options{Partitions: 2})
	require.NoError(t, err)
	defer log.Close()
	for i := range 5 {
		session := fmt.Sprint("s", i)
		_, err := eventlog.AppendOnce(t.Context(), log, session, "w", 0, []eventlog.Entry{logtest.Text(session, "a")})
		require.NoError(t, err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "b")
	out, err := command(t, "backup", "--nats", from, "--out", file, "--rate", "1GiB")
	require.NoError(t, err)
	var told backedUp
	require.NoError(t, json.Unmarshal([]byte(out), &told))
	require.Equal(t, 5, told.Sessions)
	require.Equal(t, file, told.File)
	_, err = command(t, "backup", "--nats", from, "--out", file)
	require.ErrorContains(t, err, "exists")
	_, err = command(t, "backup", "--nats", from, "--out", file, "--force")
	require.NoError(t, err)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)

	to, tonc := natsServer(t)
	_, err = command(t, "restore", file, "--nats", to)
	require.NoError(t, err)
	out, err = command(t, "verify", "--nats", to)
	require.NoError(t, err)
	require.Contains(t, out, "5 sessions, 10 records: 0 problems")
	restored, err := jetstream.Open(t.Context(), tonc, &jetstream.Options{Partitions: 2})
	require.NoError(t, err)
	defer restored.Close()
	for i := range 5 { // and who has restored them
		var all []eventlog.Record
		for r, err := range restored.Read(t.Context(), fmt.Sprint("s", i), 0, 0) {
			require.NoError(t, err)
			all = append(all, r)
		}
		require.Len(t, all, 2)
		a, ok := auditOf(all[1])
		require.True(t, ok)
		require.Equal(t, []string{"restore", "1 records of the backup of " + told.CreatedAt.UTC().Format("2006-01-02T15:04:05Z")}, []string{a.Action, a.About})
		require.Regexp(t, "^os:.+", a.By.Subject)
	}
	_, err = command(t, "restore", file, "--nats", to)
	require.ErrorIs(t, err, jetstream.ErrNotEmpty)
	_, err = command(t, "restore", file, "--nats", from)
	require.ErrorIs(t, err, jetstream.ErrNotEmpty)

	// A restore that broke off: nobody takes what it left for a log.
	half, nc := natsServer(t)
	r, err := jetstream.Restore(t.Context(), nc, jetstream.RestoreOptions{Ends: []uint64{1}})
	require.NoError(t, err)
	require.NoError(t, r.Close())
	for _, args := range [][]string{
		{"verify", "--nats", half}, {"backup", "--nats", half, "--out", filepath.Join(dir, "none")}, {"sessions", "--nats", half},
	} {
		_, err = command(t, args...)
		require.ErrorContains(t, err, jetstream.ErrRestoring.Error(), args)
	}
}

// TestBackupRefuses: what can't work changes nothing.
func TestBackupRefuses(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	none := write("none", "no backup")
	from, nc := natsServer(t)
	log, err := jetstream.Open(t.Context(), nc, nil)
	require.NoError(t, err)
	require.NoError(t, log.Close())
	whole := filepath.Join(dir, "whole")
	_, err = command(t, "backup", "--nats", from, "--out", whole)
	require.NoError(t, err)
	cluster := write("cluster.yaml", fmt.Sprintf("dataDir: %q\nnats: {name: a, replicas: 1, cluster: {listen: '127.0.0.1:7777', routes: ['nats://127.0.0.1:1'], user: u, password: p}}\n", filepath.Join(dir, "data")))
	for want, args := range map[string]string{
		"can't be restored into directly": "restore " + whole + " --config " + cluster,
		"where to restore to":             "restore " + whole,
		"one embedded server keeps one":   "restore " + whole + " --replicas 3 --data-dir " + filepath.Join(dir, "data"),
		"can't be used together":          "restore " + whole + " --nats nats://127.0.0.1:1 --data-dir " + filepath.Join(dir, "data"),
		"no backup":                       "restore " + none + " --data-dir " + filepath.Join(dir, "data"),
		"no such file":                    "restore " + none + "x --data-dir " + filepath.Join(dir, "data"),
		"verified alone":                  "verify s --backup " + whole,
		"problems were found":             "verify --backup " + none,
		"at least 65536":                  "backup --rate 1KiB --out " + none + "x",
		"an amount of bytes":              "backup --rate much --out " + none + "x",
		"not a directory":                 "backup --out " + none + "/x",
	} {
		_, err := command(t, strings.Fields(args)...)
		require.ErrorContains(t, err, want, args)
	}
	require.NoDirExists(t, filepath.Join(dir, "data"))
	out, err := command(t, "verify", "--backup", whole)
	require.NoError(t, err)
	require.Equal(t, "0 sessions, 0 records: 0 problems, 0 notes\n", out)
}
