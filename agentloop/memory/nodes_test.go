package memory_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/memory"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/projector/readmodel"
	"github.com/helixd/helixd/projector/sqlite"
	"github.com/helixd/helixd/snapshot"
)

// node is a manager on JetStream with its own index file.
type node struct {
	*memory.Manager
	t      *testing.T
	nc     *nats.Conn
	log    *jetstream.Log
	models *sqlite.Models
}

func startServer(t *testing.T, dir string) *embed.Server {
	t.Helper()
	return embedtest.Server(t, embed.Options{DataDir: dir, SyncInterval: time.Second})
}

func newNode(t *testing.T, srv *embed.Server, file string, o memory.Options) *node {
	t.Helper()
	n := &node{t: t}
	var err error
	n.nc, err = srv.Connect()
	require.NoError(t, err)
	n.log, err = jetstream.Open(t.Context(), n.nc, &jetstream.Options{Durability: "interval=1s", Partitions: 3})
	require.NoError(t, err)
	n.models = sqlite.Open(n.log, snapshot.New(n.log, nil), sqlite.Options{Path: file, Patience: time.Minute})
	o.Log, o.Index = n.log, n.models
	n.Manager = newManager(t, o)
	t.Cleanup(n.stop)
	return n
}

func (n *node) stop() {
	n.models.Close()
	n.log.Close()
	n.nc.Close()
}

// has waits for what all nodes know, and counts it.
func (n *node) has(scope eventlog.MemoryScope) map[readmodel.EmbeddingStatus]int {
	n.t.Helper()
	return listed(n.t, n.Manager, scope)
}

// TestAnOutageOnTwoNodes: an embedder that goes away mid-way, a node that dies
// between a save and its vector, and an index that is lost cost nothing.
func TestAnOutageOnTwoNodes(t *testing.T) {
	dir := t.TempDir()
	srv := startServer(t, filepath.Join(dir, "nats"))
	var out atomic.Bool
	flaky := newEmbedder(func(context.Context, []string) error {
		if out.Load() {
			return errors.New("no")
		}
		return nil
	})
	background := memory.Background(2)
	a := newNode(t, srv, filepath.Join(dir, "a.db"), memory.Options{Embedder: flaky, Executor: background})
	b := newNode(t, srv, filepath.Join(dir, "b.db"), memory.Options{Embedder: flaky})
	dying := newNode(t, srv, filepath.Join(dir, "c.db"), memory.Options{Executor: dead{}})

	const each = 8
	var wg sync.WaitGroup
	for i, n := range []*node{a, b, dying} {
		wg.Go(func() {
			for j := range each {
				if i == 0 && j == each/2 {
					out.Store(true)
				}
				_, err := n.Save(t.Context(), memory.Draft{
					Scope: ada, Key: fmt.Sprint(i, ":", j/2), Content: fmt.Sprintf("Ada was in town %d of country %d.", j/2, i),
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, a.Shutdown(t.Context()))
	dying.stop()
	for _, n := range []*node{a, b} {
		has := n.has(ada)
		require.Equal(t, 3*each/2, has["pending"]+has["complete"], "each key once")
		require.GreaterOrEqual(t, has["pending"], each/2)
		require.Equal(t, "Ada was in town 3 of country 2.", hits(search(t, n.Manager, "town 3 country 2"))[0], "by words")
	}
	_, err := b.ProcessUnembedded(t.Context())
	require.Error(t, err)

	out.Store(false)
	for _, n := range []*node{a, b} { // at once
		wg.Go(func() {
			if _, err := n.ProcessUnembedded(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, n := range []*node{a, b} {
		require.Equal(t, map[readmodel.EmbeddingStatus]int{"complete": 3 * each / 2}, n.has(ada))
	}
	before := search(t, b.Manager, "Was Ada in town 3?")

	b.stop()
	require.NoError(t, os.Remove(filepath.Join(dir, "b.db")))
	anew := newNode(t, srv, filepath.Join(dir, "b.db"), memory.Options{Embedder: flaky})
	require.Equal(t, map[readmodel.EmbeddingStatus]int{"complete": 3 * each / 2}, anew.has(ada))
	require.Equal(t, before, search(t, anew.Manager, "Was Ada in town 3?"))
}

// dead is a process that dies before it has computed a vector.
type dead struct{}

func (dead) Execute(context.Context, func(context.Context)) {}
func (dead) Shutdown(context.Context) error                 { return nil }

// TestErasedDownToTheFiles: nothing of what was erased is on the disk, and what
// was forgotten is in no index.
func TestErasedDownToTheFiles(t *testing.T) {
	dir := t.TempDir()
	srv := startServer(t, filepath.Join(dir, "nats"))
	n := newNode(t, srv, filepath.Join(dir, "index.db"), memory.Options{})
	const secret, tag = "platypussecret", "wombatsecret"
	for i := range memory.DefaultHits {
		_, err := n.Save(t.Context(), memory.Draft{Scope: ada, Content: fmt.Sprint("Ada said ", secret, i), Tags: []string{tag}})
		require.NoError(t, err)
	}
	bob := eventlog.MemoryScope{Kind: eventlog.MemoryOfUser, ID: "bob"}
	_, err := n.Save(t.Context(), memory.Draft{Scope: bob, Content: "Bob keeps his."})
	require.NoError(t, err)
	require.Len(t, search(t, n.Manager, "What has Ada said?").Hits, memory.DefaultHits)
	for pending := true; pending; {
		erasure, err := n.Erase(t.Context(), ada)
		require.NoError(t, err)
		pending = erasure.Pending
	}
	require.Empty(t, search(t, n.Manager, "What has Ada said?").Hits)
	require.Equal(t, map[readmodel.EmbeddingStatus]int{"complete": 1}, n.has(bob))
	n.stop()
	srv.Stop()
	var files []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		files = append(files, filepath.Base(path))
		for _, s := range []string{secret, tag} {
			require.NotContains(t, strings.ToLower(string(raw)), s, path)
		}
		return err
	}))
	require.True(t, slices.Contains(files, "index.db"), files)
}
