package operate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/internal/clitest"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/restore"
)

const growID = "grow x"

// growInto is the command for a single node's folder and a cluster.
func growInto(t *testing.T, nc *nats.Conn, dataDir string) (*growing, *bytes.Buffer) {
	t.Helper()
	out := new(bytes.Buffer)
	return &growing{
		growCmd: growCmd{From: dataDir, Config: "node1.yaml"}, cluster: "c", replicas: 1,
		p:  &flags.Process{Ctx: t.Context(), Stdout: out, Stderr: new(bytes.Buffer), Log: slog.New(slog.DiscardHandler)},
		to: &restoring{nc: nc, replicas: 1, id: growID},
	}, out
}

// singleNodeFolder is a folder with a log, without a mark.
func singleNodeFolder(t *testing.T) (dataDir string) {
	t.Helper()
	dataDir = t.TempDir()
	srv, err := embed.Start(t.Context(), embed.Options{DataDir: (growCmd{From: dataDir}).folder()})
	require.NoError(t, err)
	defer srv.Stop()
	nc, err := srv.Connect()
	require.NoError(t, err)
	defer nc.Close()
	openAndClose(t, nc)
	return dataDir
}

func openAndClose(t *testing.T, nc *nats.Conn) {
	t.Helper()
	log, err := jetstream.Open(t.Context(), nc, nil)
	require.NoError(t, err)
	require.NoError(t, log.Close())
}

// unfinished begins a copy that breaks off, and returns when its log was created.
func unfinished(t *testing.T, nc *nats.Conn) time.Time {
	t.Helper()
	r, err := restore.Begin(t.Context(), nc, restore.Options{Ends: []uint64{1}, ID: growID})
	require.NoError(t, err)
	require.NoError(t, r.Close())
	return look(t, nc).Created
}

func look(t *testing.T, nc *nats.Conn) restore.State {
	t.Helper()
	s, err := restore.Look(t.Context(), nc)
	require.NoError(t, err)
	return s
}

// markMoved marks a folder as one that a cluster has whose log was created then.
func markMoved(t *testing.T, g *growing, log time.Time) {
	t.Helper()
	rest, err := json.Marshal(moved{ID: growID, Log: log})
	require.NoError(t, err)
	require.NoError(t, embed.SetMoved(g.folder(), append([]byte("cluster other has it\n"), rest...)))
}

// TestGrowOfAFolderThatMovedElsewhere: another cluster may serve its data, so the mark
// stays and nothing is copied, whatever the cluster of --config has.
func TestGrowOfAFolderThatMovedElsewhere(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*testing.T, *nats.Conn){
		"nothing":            func(*testing.T, *nats.Conn) {},
		"an unfinished copy": func(t *testing.T, nc *nats.Conn) { unfinished(t, nc) },
		"a log":              openAndClose,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, nc := clitest.NATS(t)
			prepare(t, nc)
			g, out := growInto(t, nc, singleNodeFolder(t))
			markMoved(t, g, time.Now().Add(-time.Hour))
			before := look(t, nc)
			for _, err := range []error{g.cancel(), g.run()} {
				require.ErrorIs(t, err, embed.ErrMoved)
				require.ErrorContains(t, err, "cluster other has it (the cluster of node1.yaml does not have it)")
			}
			require.Empty(t, out.String())
			require.Equal(t, before, look(t, nc))
			was, err := g.marked()
			require.NoError(t, err)
			require.NotNil(t, was)
		})
	}
}

// TestGrowCancel removes the copy, before and after the folder was marked, and can be repeated.
func TestGrowCancel(t *testing.T) {
	t.Parallel()
	for name, marked := range map[string]bool{"not marked": false, "marked": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, nc := clitest.NATS(t)
			g, out := growInto(t, nc, singleNodeFolder(t))
			created := unfinished(t, nc)
			if marked {
				markMoved(t, g, created)
			}
			for range 2 {
				require.NoError(t, g.cancel())
				require.Contains(t, out.String(), "nothing has moved")
				require.Empty(t, look(t, nc).Streams)
				was, err := g.marked()
				require.NoError(t, err)
				require.Nil(t, was)
			}
			out.Reset()
			g.JSON = true
			require.NoError(t, g.cancel())
			require.JSONEq(t, fmt.Sprintf(`{"from":%q,"cluster":"c","cancelled":true}`, g.From), out.String())
		})
	}
}

// TestGrowOfAClusterThatHasTheData: the command can be repeated when it has succeeded.
func TestGrowOfAClusterThatHasTheData(t *testing.T) {
	t.Parallel()
	_, nc := clitest.NATS(t)
	openAndClose(t, nc)
	g, out := growInto(t, nc, singleNodeFolder(t))
	markMoved(t, g, look(t, nc).Created)
	require.NoError(t, g.run())
	require.Equal(t, "cluster c has the data of "+g.From+" already\n", out.String())
	out.Reset()
	g.JSON = true
	require.NoError(t, g.run())
	require.JSONEq(t, fmt.Sprintf(`{"from":%q,"cluster":"c","already":true}`, g.From), out.String())
}

// TestGrowWhileAnotherClusterGetsTheFolder: the command waits for the folder, which has
// moved when it gets it.
func TestGrowWhileAnotherClusterGetsTheFolder(t *testing.T) {
	t.Parallel()
	_, nc := clitest.NATS(t)
	g, _ := growInto(t, nc, singleNodeFolder(t))
	g.Wait = time.Minute
	other := embedtest.Server(t, embed.Options{DataDir: g.folder()})
	said := make(chan struct{})
	g.p.Log = slog.New(slog.NewTextHandler(writer(func(p []byte) {
		if bytes.Contains(p, []byte("stop the single node now")) {
			close(said)
		}
	}), nil))
	done := make(chan error, 1)
	go func() { done <- g.run() }()
	select {
	case <-said:
	case err := <-done:
		require.Fail(t, "it has not waited", "%v", err)
	}
	markMoved(t, g, time.Now())
	other.Stop()
	require.ErrorIs(t, <-done, embed.ErrMoved)
	require.Empty(t, look(t, nc).Streams)
}

// writer calls a function for what is written.
type writer func(p []byte)

func (w writer) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}
