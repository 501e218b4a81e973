package embed_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/integration/testkit"
)

const secret = "a-secret-nobody-may-find"

func requireNowhere(t *testing.T, dir, text string) {
	t.Helper()
	files, err := testkit.Scan(t.Context(), dir, text)
	require.NoError(t, err)
	require.Empty(t, files)
}

func streamS(t *testing.T, srv *embed.Server, compression natsjs.StoreCompression) (natsjs.JetStream, natsjs.Stream) {
	t.Helper()
	_, js := connect(t, srv)
	s, err := js.CreateOrUpdateStream(t.Context(), natsjs.StreamConfig{Name: "S", Subjects: []string{"s.>"}, Compression: compression})
	require.NoError(t, err)
	return js, s
}

func fill(t *testing.T, js natsjs.JetStream, n, size int, subjects ...string) (last uint64) {
	t.Helper()
	for i := range n {
		for _, subject := range subjects {
			m := nats.NewMsg(subject)
			if i%2 == 0 {
				m.Header.Set("A-Header", fmt.Sprint(subject, " ", i))
			}
			text := fmt.Sprintf("what %s said, %d. ", subject, i)
			if strings.Contains(subject, "gone") {
				text += secret
			}
			m.Data = bytes.Repeat([]byte(text), size/len(text)+1)
			ack, err := js.PublishMsg(t.Context(), m)
			require.NoError(t, err)
			last = ack.Sequence
		}
	}
	return last
}

// TestRemovedMessagesAreScrubbed: whether they were purged by subject, deleted one
// by one or fell to a purge by sequence. What is there stays, also for a server that
// has to read all blocks again.
func TestRemovedMessagesAreScrubbed(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	srv := embedtest.Server(t, embed.Options{DataDir: dir})
	js, s := streamS(t, srv, natsjs.NoCompression)
	fill(t, js, 40, 150<<10, "s.gone", "s.kept", "s.gone.0") // several blocks
	require.NoError(t, s.Purge(t.Context(), natsjs.WithPurgeSequence(20)))
	require.NoError(t, s.DeleteMsg(t.Context(), 22))
	require.NoError(t, s.Purge(t.Context(), natsjs.WithPurgeSubject("s.gone")))
	upTo := fill(t, js, 5, 100, "s.kept")
	require.NoError(t, s.Purge(t.Context(), natsjs.WithPurgeSubject("s.gone.0")))
	again := fill(t, js, 5, 100, "s.gone") // of the same subject, and there

	n, left, err := srv.Scrub(t.Context(), "S", "s.gone", 1, upTo)
	require.NoError(t, err)
	require.Zero(t, left)
	require.NotZero(t, n)
	n, left, err = srv.Scrub(t.Context(), "S", "s.gone.>", 1, upTo)
	require.NoError(t, err)
	require.Zero(t, left)
	require.NotZero(t, n)
	held, err := srv.Holds(t.Context(), "S", "s.gone", 1, upTo)
	require.NoError(t, err)
	require.Zero(t, held)
	require.NoError(t, s.Purge(t.Context(), natsjs.WithPurgeSubject("s.gone")))
	n, _, err = srv.Scrub(t.Context(), "S", "s.gone", upTo+1, again)
	require.NoError(t, err)
	require.Equal(t, 5, n)
	requireNowhere(t, dir, secret)

	var want []string
	info, err := s.Info(t.Context())
	require.NoError(t, err)
	for seq := info.State.FirstSeq; seq <= info.State.LastSeq; seq++ {
		if m, err := s.GetMsg(t.Context(), seq); err == nil {
			want = append(want, fmt.Sprint(m.Sequence, m.Subject, len(m.Data)))
		}
	}
	require.Greater(t, len(want), 30)
	for _, index := range []bool{true, false} {
		srv.Stop()
		require.Empty(t, damageOf(t, dir))
		if !index {
			for _, file := range glob(t, dir, "index.db") {
				require.NoError(t, os.Remove(file))
			}
		}
		srv = embedtest.Server(t, embed.Options{DataDir: dir})
		_, s = streamS(t, srv, natsjs.NoCompression)
		after, err := s.Info(t.Context())
		require.NoError(t, err)
		require.Equal(t, info.State.Msgs, after.State.Msgs)
		require.Equal(t, info.State.LastSeq, after.State.LastSeq)
		var got []string
		for seq := uint64(1); seq <= after.State.LastSeq; seq++ {
			if m, err := s.GetMsg(t.Context(), seq); err == nil {
				got = append(got, fmt.Sprint(m.Sequence, m.Subject, len(m.Data)))
			}
		}
		require.Equal(t, want, got)
	}
}

func glob(t *testing.T, dir, file string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "jetstream/*/streams/S/msgs", file))
	require.NoError(t, err)
	return files
}

// TestScrubbingBesideAppendsAndReads: the server appends to the same blocks, reads
// them and compacts them.
func TestScrubbingBesideAppendsAndReads(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	srv := embedtest.Server(t, embed.Options{DataDir: dir, SyncInterval: 100 * time.Millisecond})
	js, s := streamS(t, srv, natsjs.NoCompression)
	fill(t, js, 20, 1000, "s.kept")
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	published := 0
	wg.Go(func() {
		for ; ctx.Err() == nil; published++ {
			if _, err := js.Publish(t.Context(), "s.live", bytes.Repeat([]byte("x"), 2000)); !assert.NoError(t, err) {
				return
			}
		}
	})
	wg.Go(func() {
		for seq := uint64(1); ctx.Err() == nil; seq = seq%20 + 1 {
			m, err := s.GetMsg(t.Context(), seq)
			if !assert.NoError(t, err) || !assert.Equal(t, "s.kept", m.Subject) {
				return
			}
		}
	})
	for range 10 {
		upTo := fill(t, js, 50, 20<<10, "s.gone")
		require.NoError(t, s.Purge(t.Context(), natsjs.WithPurgeSubject("s.gone")))
		_, left, err := srv.Scrub(t.Context(), "S", "s.gone", 1, upTo)
		require.NoError(t, err)
		require.Zero(t, left)
		requireNowhere(t, dir, secret)
	}
	stop()
	wg.Wait()
	info, err := s.Info(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 20+published, info.State.Msgs)
	srv.Stop()
	require.Empty(t, damageOf(t, dir))
	requireNowhere(t, dir, secret)
}

// TestACompressedBlockIsScrubbedAtTheNextStart: nobody may replace it while the
// server uses it.
func TestACompressedBlockIsScrubbedAtTheNextStart(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	srv := embedtest.Server(t, embed.Options{DataDir: dir})
	js, s := streamS(t, srv, natsjs.S2Compression)
	upTo := fill(t, js, 60, 150<<10, "s.gone", "s.kept")
	require.NoError(t, s.Purge(t.Context(), natsjs.WithPurgeSubject("s.gone")))
	srv.Stop()
	srv = embedtest.Server(t, embed.Options{DataDir: dir})
	_, left, err := srv.Scrub(t.Context(), "S", "s.gone", 1, upTo)
	require.NoError(t, err)
	require.NotZero(t, left)
	held, err := srv.Holds(t.Context(), "S", "s.gone", 1, upTo)
	require.NoError(t, err)
	require.Equal(t, left, held)
	require.NoError(t, srv.ScrubAtStart("S", "s.gone", upTo))
	require.NoError(t, srv.ScrubAtStart("S", "s.gone", upTo))
	srv.Stop()

	srv = embedtest.Server(t, embed.Options{DataDir: dir})
	requireNowhere(t, dir, secret)
	_, s = streamS(t, srv, natsjs.S2Compression)
	for seq := uint64(2); seq <= upTo; seq += 2 {
		m, err := s.GetMsg(t.Context(), seq)
		require.NoError(t, err)
		require.Equal(t, "s.kept", m.Subject)
	}
	srv.Stop()
	require.Empty(t, damageOf(t, dir))
}

// TestWhatAKilledServerWasWritingIsRemoved: it was replacing a block.
func TestWhatAKilledServerWasWritingIsRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	srv := embedtest.Server(t, embed.Options{DataDir: dir})
	js, _ := streamS(t, srv, natsjs.NoCompression)
	fill(t, js, 3, 100, "s.gone")
	srv.Stop()
	block, err := os.ReadFile(glob(t, dir, "1.blk")[0])
	require.NoError(t, err)
	for _, name := range []string{"1.blk.tmp", "1.new"} {
		require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(glob(t, dir, "1.blk")[0]), name), block, 0o600))
	}
	srv = embedtest.Server(t, embed.Options{DataDir: dir})
	_, s := streamS(t, srv, natsjs.NoCompression)
	require.EqualValues(t, 3, s.CachedInfo().State.Msgs)
	require.NoError(t, s.Purge(t.Context(), natsjs.WithPurgeSubject("s.gone")))
	requireNowhere(t, dir, secret)
}

// TestAPurgeWhileBlocksAreScrubbed: the server may write the block back as it had read it for the
// purge. Rescrub knows of the scrub from its beginning, and knows it once.
func TestAPurgeWhileBlocksAreScrubbed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	srv := embedtest.Server(t, embed.Options{DataDir: dir})
	js, s := streamS(t, srv, natsjs.NoCompression)
	upTo := fill(t, js, 10, 100, "s.kept", "s.gone")
	require.NoError(t, s.Purge(t.Context(), natsjs.WithPurgeSubject("s.gone")))
	scrub := func() error {
		_, _, err := srv.Scrub(t.Context(), "S", "s.gone", 1, upTo)
		return err
	}
	release := srv.HoldScrubs()
	scrubbed := make(chan error, 1)
	go func() { scrubbed <- scrub() }()
	begun := assert.Eventually(t, func() bool { return srv.Remembered() == 1 }, 10*time.Second, time.Millisecond)
	require.NoError(t, s.Purge(t.Context(), natsjs.WithPurgeSequence(6)))
	block := glob(t, dir, "1.blk")[0]
	read, err := os.ReadFile(block)
	require.NoError(t, err)
	require.Contains(t, string(read), secret)
	release()
	require.NoError(t, <-scrubbed)
	require.True(t, begun)
	requireNowhere(t, dir, secret)
	require.NoError(t, os.WriteFile(block, read, 0o600))
	require.NoError(t, srv.Rescrub(t.Context()))
	requireNowhere(t, dir, secret)
	require.NoError(t, scrub())
	require.Equal(t, 1, srv.Remembered())
}
