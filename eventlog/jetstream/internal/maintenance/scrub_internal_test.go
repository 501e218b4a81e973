package maintenance

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/store"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/integration/testkit"
)

const secretText = "a-secret-nobody-may-find"

// serving is a log on its own server, whose files it may overwrite.
type serving struct {
	*Maintenance
	t    *testing.T
	dir  string
	srv  *embed.Server
	stop func()
}

func serve(t *testing.T, dir string, o link.Options) *serving {
	t.Helper()
	srv, err := embed.Start(t.Context(), embed.Options{DataDir: dir, SyncInterval: time.Second})
	require.NoError(t, err)
	nc, err := srv.Connect()
	require.NoError(t, err)
	o.Server = srv
	l, err := Open(t.Context(), nc, o)
	require.NoError(t, err)
	s := &serving{Maintenance: l, t: t, dir: dir, srv: srv, stop: sync.OnceFunc(func() {
		l.Close()
		nc.Close()
		srv.Stop()
	})}
	t.Cleanup(s.stop)
	return s
}

// nowhere requires that no file has the secret, also after the server has stopped.
func (s *serving) nowhere() {
	s.t.Helper()
	for range 2 {
		files, err := testkit.Scan(context.Background(), s.dir, secretText)
		require.NoError(s.t, err)
		require.Empty(s.t, files)
		s.stop()
	}
}

func (s *serving) erase(session string) {
	s.t.Helper()
	e, err := s.Erase(s.t.Context(), session)
	require.NoError(s.t, err)
	require.False(s.t, e.Pending, e.Left)
	_, err = s.Erase(s.t.Context(), session)
	require.ErrorIs(s.t, err, eventlog.ErrSessionNotFound)
}

// between waits until the server's clock has moved on, and returns a moment after which
// the next message is by more than a purge takes to begin.
func between() time.Time {
	time.Sleep(2 * time.Millisecond)
	moment := time.Now()
	time.Sleep(time.Second)
	return moment
}

// TestErasureAfterAPurgeLeavesNoByte: retention has purged the log up to the middle
// of a block, whose first part stays on the disk.
func TestErasureAfterAPurgeLeavesNoByte(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	s := serve(t, t.TempDir(), link.Options{})
	storetest.Appended(t, s.Maintenance, "s", 0, storetest.TextEntries(secretText, 300))
	mid := between()
	head := uint64(0)
	for range 20 {
		head = storetest.Appended(t, s.Maintenance, "other", head, storetest.TextEntries("kept", 300))
	}
	require.NoError(t, s.Seal(t.Context(), "s"))
	require.NoError(t, s.Seal(t.Context(), "other"))
	purged, err := s.Purge(t.Context(), eventlog.PurgeOptions{OlderThan: time.Since(mid), SealedFor: time.Nanosecond})
	require.NoError(t, err)
	require.EqualValues(t, 300, purged[0].Records)
	s.erase("s")
	_, err = s.Head(t.Context(), "other")
	require.NoError(t, err)
	s.nowhere()
}

// TestErasureAfterATrimLeavesNoByte: retention has removed segments.
func TestErasureAfterATrimLeavesNoByte(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	s := serve(t, t.TempDir(), link.Options{})
	heads := map[string]uint64{}
	for range 6 {
		heads["s"] = storetest.Appended(t, s.Maintenance, "s", heads["s"], storetest.TextEntries(secretText, 200))
	}
	for range 20 {
		heads["other"] = storetest.Appended(t, s.Maintenance, "other", heads["other"], storetest.TextEntries("kept", 200))
	}
	require.NoError(t, s.Seal(t.Context(), "s"))
	require.NoError(t, s.Seal(t.Context(), "other"))
	_, err := s.Purge(t.Context(), storetest.PurgeNow)
	require.NoError(t, err)
	floor, err := s.Trim(t.Context(), "s", 500)
	require.NoError(t, err)
	require.NotZero(t, floor)
	s.erase("s")
	s.nowhere()
}

// TestErasureOfSegmentsThatAnOlderVersionTrimmed: it has left segments in blocks that
// can't be replaced while the server runs.
func TestErasureOfSegmentsThatAnOlderVersionTrimmed(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), link.Options{})
	head := uint64(0)
	for range 6 {
		head = storetest.Appended(t, s.Maintenance, "s", head, storetest.TextEntries(secretText, 200))
	}
	require.NoError(t, s.Seal(t.Context(), "s"))
	_, err := s.Purge(t.Context(), storetest.PurgeNow)
	require.NoError(t, err)
	_, err = s.Trim(t.Context(), "s", 500)
	require.NoError(t, err)
	// It had removed them without overwriting.
	_, err = s.JS.Publish(t.Context(), layout.SegmentSubject("s", 0), []byte(secretText))
	require.NoError(t, err)
	last, err := s.LastOf(t.Context(), layout.SegmentStream(0))
	require.NoError(t, err)
	require.NoError(t, s.Remove(t.Context(), layout.SegmentStream(0), last))

	e, err := s.Erase(t.Context(), "s")
	require.NoError(t, err)
	require.True(t, e.Pending)
	require.Contains(t, e.Left, "restart that server")
	s.stop()
	s = serve(t, s.dir, link.Options{})
	n, err := s.FinishErasures(t.Context(), true)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	s.nowhere()
}

// TestErasureOfASessionOfManyRecords: unsealed, sealed and large ones, while others
// append to the same blocks.
func TestErasureOfASessionOfManyRecords(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), link.Options{})
	heads := map[string]uint64{}
	rounds := 20
	if testkit.Raced {
		rounds = 6
	}
	for i := range rounds {
		heads["s"] = storetest.Appended(t, s.Maintenance, "s", heads["s"], storetest.TextEntries(secretText, 100))
		large := storetest.TextEntries(secretText, 1)
		large[0].Payload = bytes.Repeat(fmt.Append(nil, secretText, i), store.InlineBytes/10)
		heads["s"] = storetest.Appended(t, s.Maintenance, "s", heads["s"], large)
		heads["other"] = storetest.Appended(t, s.Maintenance, "other", heads["other"], storetest.TextEntries("kept", 100))
		if i == rounds/2 {
			require.NoError(t, s.Seal(t.Context(), "s"))
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			var err error
			heads["other"], err = s.Append(t.Context(), "other", heads["other"], storetest.TextEntries("kept", 1))
			if !assert.NoError(t, err) {
				return
			}
		}
	})
	s.erase("s")
	stop()
	wg.Wait()
	recreated := storetest.TextEntries("new", 3)
	storetest.Appended(t, s.Maintenance, "s", 0, recreated)
	n := 0
	for _, err := range s.Read(t.Context(), "other", 0, 0) {
		require.NoError(t, err)
		n++
	}
	require.GreaterOrEqual(t, n, 100*rounds)
	storetest.RequireRecords(t, s.Maintenance, "s", recreated)
	s.nowhere()
}

// TestARemovedSessionIsOverwrittenLater: the process died when no one could read the
// session any more and its bytes still existed. A session created since stays.
func TestARemovedSessionIsOverwrittenLater(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir, link.Options{})
	storetest.Appended(t, s.Maintenance, "s", 0, storetest.TextEntries(secretText, 300))
	storetest.Appended(t, s.Maintenance, "other", 0, storetest.TextEntries("kept", 300))
	tombstone, err := s.wantTombstone(t.Context(), "s", 0)
	require.NoError(t, err)
	e, err := s.beginAt(t.Context(), "s", tombstone)
	require.NoError(t, err)
	records, err := s.RemoveAll(t.Context(), "s", e)
	require.NoError(t, err)
	require.Equal(t, 300, records)
	recreated := storetest.TextEntries("new", 20)
	storetest.Appended(t, s.Maintenance, "s", 0, recreated)
	s.stop()
	files, err := testkit.Scan(t.Context(), dir, secretText)
	require.NoError(t, err)
	require.NotEmpty(t, files)

	s = serve(t, dir, link.Options{})
	n, err := s.FinishErasures(t.Context(), true)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	storetest.RequireRecords(t, s.Maintenance, "s", recreated)
	s.nowhere()
}

// TestDataOfOthersIsRemovedWhileTheTombstoneExists: so the session can't have been created
// again by then.
func TestDataOfOthersIsRemovedWhileTheTombstoneExists(t *testing.T) {
	t.Parallel()
	var s *serving
	var forgotten []string
	s = serve(t, t.TempDir(), link.Options{Forget: func(ctx context.Context, session string) error {
		forgotten = append(forgotten, session)
		_, err := s.Append(ctx, session, 0, storetest.TextEntries("new", 1))
		assert.Error(t, err)
		return nil
	}})
	storetest.Appended(t, s.Maintenance, "s", 0, storetest.TextEntries(secretText, 3))
	s.erase("s")
	require.Equal(t, []string{"s"}, forgotten)
	storetest.Appended(t, s.Maintenance, "s", 0, storetest.TextEntries("new", 1))
}

// TestAnOutsideServerMayKeepWhatRetentionRemoved: no node can read its files.
func TestAnOutsideServerMayKeepWhatRetentionRemoved(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	storetest.Appended(t, l, "s", 0, storetest.TextEntries("x", 300))
	storetest.Appended(t, l, "other", 0, storetest.TextEntries("x", 300))
	_, err := l.Purge(t.Context(), storetest.PurgeNow)
	require.NoError(t, err)
	e, err := l.Erase(t.Context(), "s")
	require.NoError(t, err)
	require.True(t, e.Pending)
	require.Contains(t, e.Left, "its operator searches the files")
	_, err = l.Erase(t.Context(), "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
}

// cutOff makes the server only mark the next segment as deleted instead of overwriting
// it, as a kill at that moment does. It calls f, during which that happens, and serves
// from what the kill has left.
func (s *serving) cutOff(f func(ctx context.Context) error) *serving {
	s.t.Helper()
	inTheWay := filepath.Join(s.dir, "jetstream", "HELIX", "streams", layout.SegmentStream(0), "msgs", "1.blk.tmp")
	require.NoError(s.t, os.Mkdir(inTheWay, 0o700))
	require.ErrorContains(s.t, f(s.t.Context()), "failed to create temporary file")
	killed := s.t.TempDir()
	require.NoError(s.t, os.CopyFS(killed, os.DirFS(s.dir)))
	s.stop()
	return serve(s.t, killed, link.Options{})
}

// TestAnErasureThatAKillCutOffLeavesNoByte: the server was killed after it had marked a
// segment as deleted, and before it had overwritten it.
func TestAnErasureThatAKillCutOffLeavesNoByte(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), link.Options{})
	storetest.Appended(t, s.Maintenance, "s", 0, storetest.TextEntries(secretText, 500))
	storetest.Appended(t, s.Maintenance, "other", 0, storetest.TextEntries("kept", 500))
	require.NoError(t, s.Seal(t.Context(), "s"))
	require.NoError(t, s.Seal(t.Context(), "other"))
	s = s.cutOff(func(ctx context.Context) error {
		_, err := s.Erase(ctx, "s")
		return err
	})
	n, err := s.FinishErasures(t.Context(), true)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	storetest.RequireRecords(t, s.Maintenance, "other", storetest.TextEntries("kept", 500))
	s.nowhere()
}

// TestATrimThatAKillCutOffLeavesNoByte: a later erasure finds nothing that only a restart
// could overwrite.
func TestATrimThatAKillCutOffLeavesNoByte(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), link.Options{})
	storetest.Appended(t, s.Maintenance, "s", 0, storetest.TextEntries(secretText, 800))
	require.NoError(t, s.Seal(t.Context(), "s"))
	_, err := s.Purge(t.Context(), storetest.PurgeNow)
	require.NoError(t, err)
	s = s.cutOff(func(ctx context.Context) error {
		_, err := s.Trim(ctx, "s", 500)
		return err
	})
	s.erase("s")
	s.nowhere()
}
