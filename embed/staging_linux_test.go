package embed_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
)

// staging starts a server whose stream S stages its batches in memory, and returns the folder there.
func staging(t *testing.T, dir string) (*embed.Server, *nats.Conn, string) {
	t.Helper()
	srv := embedtest.Server(t, embed.Options{DataDir: dir, GroupSync: true})
	nc, js := connect(t, srv)
	_, err := js.CreateOrUpdateStream(t.Context(), natsjs.StreamConfig{Name: "S", Subjects: []string{"s.*"}, AllowAtomicPublish: true})
	require.NoError(t, err)
	require.NoError(t, srv.Stage("S", "NONE"))
	links := inStreams(t, dir, "*/batches")
	require.Len(t, links, 1)
	inMemory, err := os.Readlink(links[0])
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(inMemory, "/dev/shm/"), inMemory)
	return srv, nc, inMemory
}

// batch publishes messages of a batch, from a position on; the last one ends it if whole.
func batch(t *testing.T, nc *nats.Conn, id string, from, to int, whole bool) {
	t.Helper()
	for i := from; i <= to; i++ {
		m := nats.NewMsg("s." + strconv.Itoa(i))
		m.Header.Set("Nats-Batch-Id", id)
		m.Header.Set("Nats-Batch-Sequence", strconv.Itoa(i))
		if whole && i == to {
			m.Header.Set("Nats-Batch-Commit", "1")
		}
		m.Data = []byte(id + strconv.Itoa(i))
		answer, err := nc.RequestMsgWithContext(t.Context(), m)
		require.NoError(t, err)
		require.NotContains(t, string(answer.Data), `"error"`)
	}
}

// inStreams returns the files of streams that a pattern fits.
func inStreams(t *testing.T, dir, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "jetstream/*/streams", pattern))
	require.NoError(t, err)
	return files
}

// texts returns what stream S has.
func texts(t *testing.T, srv *embed.Server) (all []string) {
	t.Helper()
	_, js := connect(t, srv)
	s, err := js.Stream(t.Context(), "S")
	require.NoError(t, err)
	for seq := uint64(1); seq <= s.CachedInfo().State.LastSeq; seq++ {
		if m, err := s.GetMsg(t.Context(), seq); err == nil {
			all = append(all, string(m.Data))
		}
	}
	return all
}

// cut makes the file of stream S' messages as it was when it had so many.
func cut(t *testing.T, dir string, messages int) {
	t.Helper()
	path := inStreams(t, dir, "S/msgs/1.blk")[0]
	block, err := os.ReadFile(path)
	require.NoError(t, err)
	at := 0
	for range messages {
		at += int(binary.LittleEndian.Uint32(block[at:]) &^ (1 << 31))
	}
	require.Less(t, at, len(block))
	require.NoError(t, os.WriteFile(path, block[:at], 0o640))
	require.NoError(t, os.Remove(filepath.Join(filepath.Dir(path), "index.db")))
}

// TestBatchesAreStagedInMemory: batches leave no file on the disk, and an orderly stop leaves nothing in memory.
func TestBatchesAreStagedInMemory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	srv, nc, inMemory := staging(t, dir)
	batch(t, nc, "a", 1, 3, true)
	batch(t, nc, "b", 1, 2, false)
	staged, err := os.ReadDir(inMemory)
	require.NoError(t, err)
	require.Len(t, staged, 1, "the batch that is not complete")
	batch(t, nc, "b", 3, 3, true)
	require.Equal(t, []string{"a1", "a2", "a3", "b1", "b2", "b3"}, texts(t, srv))
	staged, err = os.ReadDir(inMemory)
	require.NoError(t, err)
	require.Empty(t, staged)
	srv.Stop()
	require.NoDirExists(t, filepath.Dir(inMemory))
	require.NoFileExists(t, filepath.Join(dir, "helixd.staging"))
	require.Empty(t, inStreams(t, dir, "*/batches"))
}

// killed stops a server and leaves its data folder as a SIGKILL does, in the middle of storing batch b: "a1 a2 b1
// b2" are in the stream, b3 and b4 are staged only.
func killed(t *testing.T) (dir, inMemory string) {
	t.Helper()
	whole := t.TempDir()
	srv, nc, _ := staging(t, whole)
	batch(t, nc, "a", 1, 2, true)
	batch(t, nc, "b", 1, 4, true)
	nc.Close()
	srv.Stop()
	cut(t, whole, 4)

	dir = t.TempDir()
	srv, nc, inMemory = staging(t, dir)
	batch(t, nc, "b", 1, 4, false)
	nc.Close()
	srv.StopServer() // which writes what is staged
	file, err := os.ReadFile(filepath.Join(dir, "helixd.staging"))
	require.NoError(t, err)
	link := inStreams(t, dir, "S/batches")[0]
	kept := t.TempDir()
	require.NoError(t, os.CopyFS(kept, os.DirFS(inMemory)))
	srv.Stop()
	// What the orderly stop has removed, and the messages that were stored.
	require.NoError(t, os.CopyFS(inMemory, os.DirFS(kept)))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "helixd.staging"), file, 0o600))
	require.NoError(t, os.Symlink(inMemory, link))
	messages := filepath.Join(filepath.Dir(link), "msgs")
	require.NoError(t, os.RemoveAll(messages))
	require.NoError(t, os.CopyFS(messages, os.DirFS(filepath.Dir(inStreams(t, whole, "S/msgs/1.blk")[0]))))
	t.Cleanup(func() { os.RemoveAll(filepath.Dir(inMemory)) })
	return dir, inMemory
}

// TestAKilledServersBatchIsCompleted from what is in memory, also in a copy of the folder.
func TestAKilledServersBatchIsCompleted(t *testing.T) {
	t.Parallel()
	dir, inMemory := killed(t)
	folder, err := embed.OpenFolder(dir)
	require.NoError(t, err)
	copied := t.TempDir()
	require.NoError(t, folder.Salvage(t.Context(), copied))
	folder.Close()
	for _, dir := range []string{copied, dir} {
		require.DirExists(t, inMemory)
		srv := embedtest.Server(t, embed.Options{DataDir: dir, GroupSync: true})
		require.Equal(t, []string{"a1", "a2", "b1", "b2", "b3", "b4"}, texts(t, srv))
		srv.Stop()
	}
	require.NoDirExists(t, filepath.Dir(inMemory))
}

// TestAPowerLossLeavesNoPartOfABatch: without what was in memory, the batch's beginning is removed; another
// start removes nothing else.
func TestAPowerLossLeavesNoPartOfABatch(t *testing.T) {
	t.Parallel()
	dir, inMemory := killed(t)
	require.NoError(t, os.RemoveAll(filepath.Dir(inMemory)))
	for range 2 {
		srv := embedtest.Server(t, embed.Options{DataDir: dir, GroupSync: true})
		require.Equal(t, []string{"a1", "a2"}, texts(t, srv))
		srv.Stop()
	}
}

// TestOnlyACutBatchIsRemoved: after a power loss, a whole batch stays, also if its last message was removed.
func TestOnlyACutBatchIsRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	srv, nc, inMemory := staging(t, dir)
	batch(t, nc, "a", 1, 3, true)
	_, js := connect(t, srv)
	s, err := js.Stream(t.Context(), "S")
	require.NoError(t, err)
	require.NoError(t, s.DeleteMsg(t.Context(), 3))
	file, err := os.ReadFile(filepath.Join(dir, "helixd.staging"))
	require.NoError(t, err)
	srv.Stop()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "helixd.staging"), file, 0o600))
	require.NoDirExists(t, inMemory)

	srv = embedtest.Server(t, embed.Options{DataDir: dir, GroupSync: true})
	require.Equal(t, []string{"a1", "a2"}, texts(t, srv))
	require.NoFileExists(t, filepath.Join(dir, "helixd.staging"))
}

// TestAForeignStagingFileIsRefused: the file says what is removed, so it may name nothing else.
func TestAForeignStagingFileIsRefused(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", "/", "/dev/shm", "/dev/shm/other", "/tmp/helixd-staging-1", "/dev/shm/helixd-staging-1/../x"} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "helixd.staging"), []byte(path), 0o600))
		_, err := embed.Start(t.Context(), embed.Options{DataDir: dir})
		require.ErrorContains(t, err, "helixd.staging", "%q", path)
	}
}
