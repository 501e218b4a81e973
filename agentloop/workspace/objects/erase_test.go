package objects_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/objects"
	"github.com/helixd/helixd/agentloop/workspace/workspacetest"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/integration/testkit"
)

func jetStream(t *testing.T, nc *nats.Conn) natsjs.JetStream {
	t.Helper()
	js, err := natsjs.New(nc, natsjs.WithDefaultTimeout(time.Minute))
	require.NoError(t, err)
	return js
}

// createStream makes a stream of that name that would lose files.
func createStream(t *testing.T, js natsjs.JetStream) {
	t.Helper()
	_, err := js.CreateStream(t.Context(), natsjs.StreamConfig{
		Name: objects.Stream, Subjects: []string{"helix.work.>", "helix.workgone.*"}, MaxAge: time.Hour,
	})
	require.NoError(t, err)
}

func filesHolding(t *testing.T, dir, text string) []string {
	t.Helper()
	files, err := testkit.Scan(t.Context(), dir, text)
	require.NoError(t, err)
	return files
}

// messages returns how many the stream has.
func messages(t *testing.T, nc *nats.Conn) uint64 {
	t.Helper()
	s, err := jetStream(t, nc).Stream(t.Context(), objects.Stream)
	require.NoError(t, err)
	return s.CachedInfo().State.Msgs
}

func TestRemovalLeavesNoByteInAnyFile(t *testing.T) {
	const secret, kept = "a-secret-nobody-may-find", "what-others-wrote"
	dir := t.TempDir()
	srv, err := embed.Start(t.Context(), embed.Options{DataDir: dir, SyncInterval: time.Second})
	require.NoError(t, err)
	nc, err := srv.Connect()
	require.NoError(t, err)
	p := open(t, nc, objects.Options{})
	write := func(s workspace.Session, text string) {
		w := workspacetest.Open(t, p, s)
		for i := range 3 {
			require.NoError(t, w.FS().WriteFile(t.Context(), text+"-as-a-name/"+fmt.Sprint(i), []byte(strings.Repeat(text, 10_000))))
			require.NoError(t, w.FS().WriteFile(t.Context(), "same", []byte(text+fmt.Sprint(i))))
			_, err := w.Snapshots().Take(t.Context())
			require.NoError(t, err)
		}
		require.NoError(t, w.FS().Remove(t.Context(), "same"))
	}
	write(workspacetest.Session, secret)
	write(workspace.Session{Root: workspacetest.Session.Root, ID: "child"}, secret)
	write(workspace.Session{Root: "other", ID: "other"}, kept)
	require.NotEmpty(t, filesHolding(t, dir, secret), "the search finds what is there")

	n, err := p.Remove(t.Context(), workspacetest.Session.Root)
	require.NoError(t, err)
	require.Equal(t, 6, n)
	require.NoError(t, nc.Drain())
	require.Eventually(t, nc.IsClosed, time.Minute, 5*time.Millisecond)
	srv.Stop()
	require.Empty(t, filesHolding(t, dir, secret))
	require.NotEmpty(t, filesHolding(t, dir, kept))
}

// A writer that has not heard of a removal leaves nothing that a next one does
// not find.
func TestWritersBesideARemoval(t *testing.T) {
	nc := server(t, t.TempDir())
	p := open(t, nc, objects.Options{})
	for range 5 {
		w := workspacetest.Open(t, p, workspacetest.Session)
		ended := make(chan error)
		go func() {
			for i := 0; ; i++ {
				if err := w.FS().WriteFile(t.Context(), fmt.Sprint(i), []byte(fmt.Sprint("late", i))); err != nil {
					ended <- err
					return
				}
			}
		}()
		_, err := p.Remove(t.Context(), workspacetest.Session.Root)
		require.NoError(t, err)
		require.ErrorIs(t, <-ended, workspace.ErrGone)
		roots, err := p.Roots(t.Context())
		require.NoError(t, err)
		if len(roots) > 0 {
			_, err = p.Remove(t.Context(), roots[0])
			require.NoError(t, err)
		}
		require.Zero(t, messages(t, nc))
	}
}

// On more than one replica the servers' own logs keep what a removal does not reach, and nobody can
// tell until when.
func TestARemovalFromReplicasStaysPending(t *testing.T) {
	nc := server(t, t.TempDir())
	p := open(t, nc, objects.Options{})
	p.Replicate(3)
	w := workspacetest.Open(t, p, workspacetest.Session)
	require.NoError(t, w.FS().WriteFile(t.Context(), "a", []byte("1")))
	for range 2 {
		_, err := p.Remove(t.Context(), workspacetest.Session.Root)
		require.ErrorIs(t, err, workspace.ErrPending)
		require.ErrorContains(t, err, "search the servers' files for helix.work.")
		roots, err := p.Roots(t.Context())
		require.NoError(t, err)
		require.Empty(t, roots, "nothing comes of asking again")
	}
	_, err := p.Remove(t.Context(), "another")
	require.NoError(t, err)
	require.EqualValues(t, 1, messages(t, nc), "that it may be left")
}

func TestGarbageIsCollected(t *testing.T) {
	nc := server(t, t.TempDir())
	p := open(t, nc, objects.Options{Grace: time.Millisecond})
	w := workspacetest.Open(t, p, workspacetest.Session)
	f, ctx := w.FS(), t.Context()
	require.NoError(t, f.WriteFile(ctx, "kept", []byte("by a snapshot")))
	s, err := w.Snapshots().Take(ctx)
	require.NoError(t, err)
	for i := range 20 {
		require.NoError(t, f.WriteFile(ctx, "kept", []byte(fmt.Sprint("over and over ", i))))
	}
	require.NoError(t, f.WriteFile(ctx, "b", []byte("now")))
	before := messages(t, nc)
	require.Eventually(t, func() bool {
		require.NoError(t, p.Collect(ctx, workspacetest.Session.Root))
		// A head, its manifest and two contents; a snapshot, its manifest and its
		// content; and that there is a tree.
		return messages(t, nc) == 8
	}, time.Minute, 10*time.Millisecond, "%d before", before)
	require.Equal(t, map[string]string{"kept": "over and over 19", "b": "now"}, workspacetest.Files(t, w))
	require.NoError(t, w.Snapshots().Restore(ctx, s))
	require.Equal(t, map[string]string{"kept": "by a snapshot"}, workspacetest.Files(t, w))
	require.NoError(t, f.WriteFile(ctx, "kept", []byte("over and over 1")), "what was collected can come again")
	require.Equal(t, map[string]string{"kept": "over and over 1"}, workspacetest.Files(t, w))

	// Another node takes a snapshot meanwhile.
	there := workspacetest.Open(t, open(t, nc, objects.Options{}), workspacetest.Session)
	theirs, err := there.Snapshots().Take(ctx)
	require.NoError(t, err)
	require.NoError(t, f.WriteFile(ctx, "kept", []byte("and over")))
	require.Eventually(t, func() bool {
		require.NoError(t, p.Collect(ctx, workspacetest.Session.Root))
		return messages(t, nc) == 10 // its snapshot, manifest and content, and a file less
	}, time.Minute, 10*time.Millisecond)
	for _, taken := range []struct {
		snapshot []byte
		text     string
	}{{theirs, "over and over 1"}, {s, "by a snapshot"}} {
		require.NoError(t, w.Snapshots().Restore(ctx, taken.snapshot))
		require.Equal(t, map[string]string{"kept": taken.text}, workspacetest.Files(t, w))
	}
}

// What is left when a collection breaks off is collected by the next one, also if the tree was
// without garbage before the change.
func TestACollectionThatBreaksOffIsContinued(t *testing.T) {
	nc := server(t, t.TempDir())
	p := open(t, nc, objects.Options{Grace: time.Millisecond})
	w := workspacetest.Open(t, p, workspacetest.Session)
	root := workspacetest.Session.Root
	collected := func(n uint64) {
		t.Helper()
		require.Eventually(t, func() bool {
			require.NoError(t, p.Collect(t.Context(), root))
			return messages(t, nc) == n
		}, 10*time.Second, 5*time.Millisecond)
	}
	require.NoError(t, w.FS().WriteFile(t.Context(), "a", []byte("1")))
	s, err := w.Snapshots().Take(t.Context())
	require.NoError(t, err)
	require.NoError(t, w.FS().WriteFile(t.Context(), "a", []byte("2")))
	collected(7) // a head, a snapshot, a manifest and a content of each; and that there is a tree
	require.NoError(t, p.Collect(t.Context(), root))
	require.NoError(t, w.Snapshots().Restore(t.Context(), s))

	ctx, breakOff := context.WithCancel(t.Context())
	defer breakOff()
	sub, err := nc.Subscribe("$JS.API.STREAM.MSG.DELETE."+objects.Stream, func(*nats.Msg) { breakOff() })
	require.NoError(t, err)
	for ctx.Err() == nil { // until something is old enough
		_ = p.Collect(ctx, root)
	}
	require.NoError(t, sub.Unsubscribe())
	require.Greater(t, messages(t, nc), uint64(5))
	collected(5)
}

// A process that is killed leaves what nothing tells of: each looks for that until it has succeeded once.
func TestWhatAKilledProcessLeft(t *testing.T) {
	nc := server(t, t.TempDir())
	p := open(t, nc, objects.Options{})
	_, err := jetStream(t, nc).Publish(t.Context(), "helix.work.left.part.00.0", []byte("left"))
	require.NoError(t, err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = p.Roots(ended)
	require.ErrorIs(t, err, context.Canceled)
	roots, err := p.Roots(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"left"}, roots)
	_, err = p.Remove(t.Context(), "left")
	require.NoError(t, err)
	require.Zero(t, messages(t, nc))
}
