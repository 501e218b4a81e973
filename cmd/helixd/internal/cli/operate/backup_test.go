package operate

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/internal/cli/inspect"
	"github.com/helixd/helixd/cmd/helixd/internal/clitest"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/restore"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/snapshot"
	foldsjs "github.com/helixd/helixd/snapshot/jetstream"
)

// everything has the commands of operators, and those that read what is restored.
type everything struct {
	Operate Commands         `embed:""`
	Inspect inspect.Commands `embed:""`
}

// TestBackupOfNATS: from one deployment to another, with no daemon.
func TestBackupOfNATS(t *testing.T) {
	t.Parallel()
	from, nc := clitest.NATS(t)
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
	out, _, err := clitest.Run[Commands](t, "", "backup", "--nats", from, "--out", file, "--rate", "1GiB", "--json")
	require.NoError(t, err)
	var told backedUp
	require.NoError(t, json.Unmarshal([]byte(out), &told))
	require.Equal(t, 5, told.Sessions)
	require.Equal(t, file, told.File)
	_, _, err = clitest.Run[Commands](t, "", "backup", "--nats", from, "--out", file)
	require.ErrorContains(t, err, "exists")
	out, _, err = clitest.Run[Commands](t, "", "backup", "--nats", from, "--out", file, "--force")
	require.NoError(t, err)
	require.Regexp(t, fmt.Sprintf("^%s: 5 sessions, 5 records, %s of content, as of 20\\S+Z\n$", regexp.QuoteMeta(file), terminal.Bytes(told.Bytes)), out)
	out, _, err = clitest.Run[Commands](t, "", "backup", "--nats", from, "--out", file, "--force", "--json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal([]byte(out), &told))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)

	to, tonc := clitest.NATS(t)
	out, _, err = clitest.Run[Commands](t, "", "restore", file, "--nats", to)
	require.NoError(t, err)
	require.Contains(t, out, "; a daemon continues 0\n")
	out, _, err = clitest.Run[Commands](t, "", "verify", "--nats", to)
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
		f, err := eventlog.DecodeFact(all[1].Payload)
		require.NoError(t, err)
		imported := f.(*fact.SessionImported)
		require.Equal(t, 1, imported.Records)
		require.Equal(t, told.CreatedAt.UnixMilli(), imported.Backup)
		require.Regexp(t, "^os:.+", fact.ActorIn(f).Subject)
	}
	_, _, err = clitest.Run[Commands](t, "", "restore", file, "--nats", to)
	require.ErrorIs(t, err, restore.ErrNotEmpty)
	_, _, err = clitest.Run[Commands](t, "", "restore", file, "--nats", from)
	require.ErrorIs(t, err, restore.ErrNotEmpty)

	// A restore that broke off: nobody takes what it left for a log.
	half, nc := clitest.NATS(t)
	r, err := restore.Begin(t.Context(), nc, restore.Options{Ends: []uint64{1}})
	require.NoError(t, err)
	require.NoError(t, r.Close())
	for _, args := range [][]string{
		{"verify", "--nats", half}, {"backup", "--nats", half, "--out", filepath.Join(dir, "none")}, {"sessions", "--nats", half},
	} {
		_, _, err = clitest.Run[everything](t, "", args...)
		require.ErrorContains(t, err, restore.ErrRestoring.Error(), args)
	}
}

// TestABackupOfNATSStoresNothing: it folds a session whose beginning retention has removed, but
// saves no state of it.
func TestABackupOfNATSStoresNothing(t *testing.T) {
	t.Parallel()
	from, nc := clitest.NATS(t)
	log, err := jetstream.Open(t.Context(), nc, nil)
	require.NoError(t, err)
	defer log.Close()
	folds, err := foldsjs.Open(t.Context(), nc, log, 1)
	require.NoError(t, err)
	states := snapshot.New(log, &snapshot.StoreOptions{Folds: folds})
	more := func(n int) {
		t.Helper()
		logtest.AppendNext(t, log, "s", slices.Repeat([]eventlog.Entry{logtest.Text("s", "some text")}, n)...)
	}
	more(300)
	require.NoError(t, log.Seal(t.Context(), "s"))
	more(300)
	_, err = states.Head(t.Context(), "s") // saves a packed fold
	require.NoError(t, err)
	require.NoError(t, log.Seal(t.Context(), "s"))
	_, err = log.Purge(t.Context(), eventlog.PurgeOptions{SealedFor: time.Nanosecond})
	require.NoError(t, err)
	done, err := states.Retain(t.Context(), snapshot.Retention{Drop: true})
	require.NoError(t, err)
	require.NotZero(t, done.Dropped["s"])
	inJSON, err := folds.Sequences(t.Context(), "s", snapshot.JSON)
	require.NoError(t, err)
	require.Len(t, inJSON, 1)
	js, err := natsjs.New(nc)
	require.NoError(t, err)
	saved, err := js.Stream(t.Context(), "HELIX_SNAP_0")
	require.NoError(t, err)
	require.NoError(t, saved.Purge(t.Context(), natsjs.WithPurgeSubject(fmt.Sprint("helix.snap.0.s.", inJSON[0]))))
	more(600)

	last := func() uint64 {
		t.Helper()
		info, err := saved.Info(t.Context())
		require.NoError(t, err)
		require.NotZero(t, info.State.Msgs)
		return info.State.LastSeq
	}
	before := last()
	_, _, err = clitest.Run[Commands](t, "", "backup", "--nats", from, "--out", filepath.Join(t.TempDir(), "b"))
	require.NoError(t, err)
	require.Equal(t, before, last())
}

// TestARestoreReachesTheDisk: while the disk does not take what was restored, no daemon uses
// it, and the restore does not succeed.
func TestARestoreReachesTheDisk(t *testing.T) {
	t.Parallel()
	from, nc := clitest.NATS(t)
	openAndClose(t, nc)
	file := filepath.Join(t.TempDir(), "b")
	_, _, err := clitest.Run[Commands](t, "", "backup", "--nats", from, "--out", file)
	require.NoError(t, err)
	taken, err := os.ReadFile(file)
	require.NoError(t, err)

	r, err := fill(t.Context(), embed.Options{DataDir: t.TempDir(), SyncInterval: time.Minute, Logger: slog.New(slog.DiscardHandler)}, 1)
	require.NoError(t, err)
	defer r.close()
	_, err = r.write(t.Context(), bytes.NewReader(taken))
	require.NoError(t, err)
	syncAll, syncs, failing := r.sync, 0, 1
	r.sync = func(ctx context.Context) error {
		if syncs++; syncs == failing {
			return syscall.EIO
		}
		return syncAll(ctx)
	}
	require.ErrorIs(t, r.finish(t.Context()), syscall.EIO)
	_, err = jetstream.Open(t.Context(), r.nc, nil)
	require.ErrorIs(t, err, restore.ErrRestoring)

	syncs, failing = 0, 2
	require.ErrorIs(t, r.finish(t.Context()), syscall.EIO, "nor if the disk does not know that the restore has ended")
	failing = 0
	require.NoError(t, r.finish(t.Context()))
	openAndClose(t, r.nc)
}

// TestASavedStateOutlastsAnElection: a cluster that elects a leader does not break off a
// restore.
func TestASavedStateOutlastsAnElection(t *testing.T) {
	t.Parallel()
	folds := &electing{left: 2}
	size, err := settling{folds, inCluster(t)}.Save(t.Context(), "s", snapshot.Saved{})
	require.NoError(t, err)
	require.Equal(t, 7, size)
}

// electing is a store of folds whose stream has no leader for some requests.
type electing struct {
	snapshot.Folds
	left int
}

func (e *electing) Save(context.Context, string, snapshot.Saved) (int, error) {
	if e.left--; e.left >= 0 {
		return 0, fmt.Errorf("saved folds: %w", natsjs.ErrNoStreamResponse)
	}
	return 7, nil
}

// inCluster returns a connection to what says that it is a server of a cluster.
func inCluster(t *testing.T) *nats.Conn {
	t.Helper()
	at, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { at.Close() })
	go func() {
		c, err := at.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		fmt.Fprint(c, "INFO {\"server_id\":\"s\",\"cluster\":\"c\",\"max_payload\":1024,\"headers\":true}\r\n")
		for lines := bufio.NewScanner(c); lines.Scan(); {
			if lines.Text() == "PING" {
				fmt.Fprint(c, "PONG\r\n")
			}
		}
	}()
	nc, err := nats.Connect("nats://" + at.Addr().String())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
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
	from, nc := clitest.NATS(t)
	log, err := jetstream.Open(t.Context(), nc, nil)
	require.NoError(t, err)
	require.NoError(t, log.Close())
	whole := filepath.Join(dir, "whole")
	_, _, err = clitest.Run[Commands](t, "", "backup", "--nats", from, "--out", whole)
	require.NoError(t, err)
	replicated := write("helix.yaml", "auth: {allowUnauthenticated: true}\ndataDir: "+filepath.Join(dir, "data")+"\nnats: {replicas: 3}\n")
	for want, args := range map[string]string{
		"where to restore to":           "restore " + whole,
		"one embedded server keeps one": "restore " + whole + " --replicas 3 --data-dir " + filepath.Join(dir, "data"),
		replicated + ":3: nats.replicas: needs nats.url or nats.cluster.listen: one embedded server keeps one replica": "restore " + whole + " --config " + replicated,
		"can't be used together": "restore " + whole + " --nats nats://127.0.0.1:1 --data-dir " + filepath.Join(dir, "data"),
		"no backup":              "restore " + none + " --data-dir " + filepath.Join(dir, "data"),
		"no such file":           "restore " + none + "x --data-dir " + filepath.Join(dir, "data"),
		"verified alone":         "verify s --backup " + whole,
		"problems were found":    "verify --backup " + none,
		"at least 65536":         "backup --rate 1KiB --out " + none + "x",
		"an amount of bytes":     "backup --rate much --out " + none + "x",
		"not a directory":        "backup --out " + none + "/x",
	} {
		_, _, err := clitest.Run[Commands](t, "", strings.Fields(args)...)
		require.ErrorContains(t, err, want, args)
	}
	require.NoDirExists(t, filepath.Join(dir, "data"))
	out, _, err := clitest.Run[Commands](t, "", "verify", "--backup", whole)
	require.NoError(t, err)
	require.Equal(t, "0 sessions, 0 records: 0 problems, 0 notes\n", out)
}
