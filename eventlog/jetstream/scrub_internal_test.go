package jetstream

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
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

const secretText = "a-secret-nobody-may-find"

// serving is a log on its own server, whose files it may overwrite.
type serving struct {
	*Log
	t    *testing.T
	dir  string
	srv  *embed.Server
	stop func()
}

func serve(t *testing.T, dir string, o Options) *serving {
	t.Helper()
	srv, err := embed.Start(t.Context(), embed.Options{DataDir: dir, SyncInterval: time.Second})
	require.NoError(t, err)
	nc, err := srv.Connect()
	require.NoError(t, err)
	o.Server = srv
	l, err := Open(t.Context(), nc, &o)
	require.NoError(t, err)
	s := &serving{Log: l, t: t, dir: dir, srv: srv, stop: sync.OnceFunc(func() {
		l.Close()
		nc.Close()
		srv.Stop()
	})}
	t.Cleanup(s.stop)
	return s
}

// nowhere requires that no file has the secret, also when the server is stopped.
func (s *serving) nowhere() {
	s.t.Helper()
	for range 2 {
		files, err := embed.Scan(context.Background(), s.dir, secretText)
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

// between waits until the server's clock has moved on, and returns a moment that
// what comes next is after by more than a purge takes to begin.
func between() time.Time {
	time.Sleep(2 * time.Millisecond)
	moment := time.Now()
	time.Sleep(time.Second)
	return moment
}

// TestErasureAfterAPurgeLeavesNoByte: retention has purged the log up to the middle
// of a block, whose first part stays on the disk.
func TestErasureAfterAPurgeLeavesNoByte(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), Options{})
	appended(t, s.Log, "s", 0, textEntries(secretText, 300))
	mid := between()
	head := uint64(0)
	for range 20 {
		head = appended(t, s.Log, "other", head, textEntries("kept", 300))
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
	t.Parallel()
	s := serve(t, t.TempDir(), Options{})
	heads := map[string]uint64{}
	for range 6 {
		heads["s"] = appended(t, s.Log, "s", heads["s"], textEntries(secretText, 200))
	}
	for range 20 {
		heads["other"] = appended(t, s.Log, "other", heads["other"], textEntries("kept", 200))
	}
	require.NoError(t, s.Seal(t.Context(), "s"))
	require.NoError(t, s.Seal(t.Context(), "other"))
	_, err := s.Purge(t.Context(), purgeNow)
	require.NoError(t, err)
	floor, err := s.Trim(t.Context(), "s", 500)
	require.NoError(t, err)
	require.NotZero(t, floor)
	s.erase("s")
	s.nowhere()
}

// TestErasureOfWhatAnOlderVersionTrimmed: it has left segments in blocks that nobody
// may replace while the server runs.
func TestErasureOfWhatAnOlderVersionTrimmed(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), Options{})
	head := uint64(0)
	for range 6 {
		head = appended(t, s.Log, "s", head, textEntries(secretText, 200))
	}
	require.NoError(t, s.Seal(t.Context(), "s"))
	_, err := s.Purge(t.Context(), purgeNow)
	require.NoError(t, err)
	_, err = s.Trim(t.Context(), "s", 500)
	require.NoError(t, err)
	// What it had removed, it had not overwritten.
	_, err = s.js.Publish(t.Context(), layout.SegmentSubject("s", 0), []byte(secretText))
	require.NoError(t, err)
	last, err := s.lastOf(t.Context(), layout.SegmentStream(0))
	require.NoError(t, err)
	require.NoError(t, s.remove(t.Context(), layout.SegmentStream(0), last))

	e, err := s.Erase(t.Context(), "s")
	require.NoError(t, err)
	require.True(t, e.Pending)
	require.Contains(t, e.Left, "restart that server")
	s.stop()
	s = serve(t, s.dir, Options{})
	n, err := s.FinishErasures(t.Context(), true)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	s.nowhere()
}

// TestErasureOfASessionOfManyRecords: unsealed, sealed and large ones, while others
// append to the same blocks.
func TestErasureOfASessionOfManyRecords(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), Options{})
	heads := map[string]uint64{}
	for i := range 20 {
		heads["s"] = appended(t, s.Log, "s", heads["s"], textEntries(secretText, 100))
		large := textEntries(secretText, 1)
		large[0].Payload = bytes.Repeat(fmt.Append(nil, secretText, i), inlineBytes/10)
		heads["s"] = appended(t, s.Log, "s", heads["s"], large)
		heads["other"] = appended(t, s.Log, "other", heads["other"], textEntries("kept", 100))
		if i == 10 {
			require.NoError(t, s.Seal(t.Context(), "s"))
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			var err error
			heads["other"], err = s.Append(t.Context(), "other", heads["other"], textEntries("kept", 1))
			if !assert.NoError(t, err) {
				return
			}
		}
	})
	s.erase("s")
	stop()
	wg.Wait()
	anew := textEntries("new", 3)
	appended(t, s.Log, "s", 0, anew)
	n := 0
	for _, err := range s.Read(t.Context(), "other", 0, 0) {
		require.NoError(t, err)
		n++
	}
	require.GreaterOrEqual(t, n, 2000)
	requireRecords(t, s.Log, "s", anew)
	s.nowhere()
}

// TestARemovedSessionIsOverwrittenLater: the process has died when nobody could read
// it any more, and its bytes were there. What was created again since stays.
func TestARemovedSessionIsOverwrittenLater(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir, Options{})
	appended(t, s.Log, "s", 0, textEntries(secretText, 300))
	appended(t, s.Log, "other", 0, textEntries("kept", 300))
	fence, err := s.wantFence(t.Context(), "s")
	require.NoError(t, err)
	e, err := s.beginAt(t.Context(), "s", fence)
	require.NoError(t, err)
	records, err := s.removeAll(t.Context(), "s", e)
	require.NoError(t, err)
	require.Equal(t, 300, records)
	anew := textEntries("new", 20)
	appended(t, s.Log, "s", 0, anew)
	s.stop()
	files, err := embed.Scan(t.Context(), dir, secretText)
	require.NoError(t, err)
	require.NotEmpty(t, files)

	s = serve(t, dir, Options{})
	n, err := s.FinishErasures(t.Context(), true)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	requireRecords(t, s.Log, "s", anew)
	s.nowhere()
}

// TestWhatOthersKeepIsForgottenWhileTheFenceStands: nobody has created the session
// again by then.
func TestWhatOthersKeepIsForgottenWhileTheFenceStands(t *testing.T) {
	t.Parallel()
	var s *serving
	var forgotten []string
	s = serve(t, t.TempDir(), Options{Forget: func(ctx context.Context, session string) error {
		forgotten = append(forgotten, session)
		_, err := s.Append(ctx, session, 0, textEntries("new", 1))
		assert.Error(t, err)
		return nil
	}})
	appended(t, s.Log, "s", 0, textEntries(secretText, 3))
	s.erase("s")
	require.Equal(t, []string{"s"}, forgotten)
	appended(t, s.Log, "s", 0, textEntries("new", 1))
}

// TestAnOutsideServerMayKeepWhatRetentionRemoved: nobody here can look at its files.
func TestAnOutsideServerMayKeepWhatRetentionRemoved(t *testing.T) {
	t.Parallel()
	l := openLog(t, nil)
	appended(t, l, "s", 0, textEntries("x", 300))
	appended(t, l, "other", 0, textEntries("x", 300))
	_, err := l.Purge(t.Context(), purgeNow)
	require.NoError(t, err)
	e, err := l.Erase(t.Context(), "s")
	require.NoError(t, err)
	require.True(t, e.Pending)
	require.Contains(t, e.Left, "its operator searches the files")
	_, err = l.Erase(t.Context(), "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
}

// cutOff has the next message of the segments that the server is to overwrite only be
// marked as deleted, as a kill at that moment does. It calls f, which meets that, and
// serves from what the kill has left.
func (s *serving) cutOff(f func(ctx context.Context) error) *serving {
	s.t.Helper()
	inTheWay := filepath.Join(s.dir, "jetstream", "HELIX", "streams", layout.SegmentStream(0), "msgs", "1.blk.tmp")
	require.NoError(s.t, os.Mkdir(inTheWay, 0o700))
	require.ErrorContains(s.t, f(s.t.Context()), "failed to create temporary file")
	killed := s.t.TempDir()
	require.NoError(s.t, os.CopyFS(killed, os.DirFS(s.dir)))
	s.stop()
	return serve(s.t, killed, Options{})
}

// TestAnErasureThatAKillCutOffLeavesNoByte: the server was killed when it had marked a
// segment as deleted, and had not overwritten it.
func TestAnErasureThatAKillCutOffLeavesNoByte(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), Options{})
	appended(t, s.Log, "s", 0, textEntries(secretText, 500))
	appended(t, s.Log, "other", 0, textEntries("kept", 500))
	require.NoError(t, s.Seal(t.Context(), "s"))
	require.NoError(t, s.Seal(t.Context(), "other"))
	s = s.cutOff(func(ctx context.Context) error {
		_, err := s.Erase(ctx, "s")
		return err
	})
	n, err := s.FinishErasures(t.Context(), true)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	requireRecords(t, s.Log, "other", textEntries("kept", 500))
	s.nowhere()
}

// TestATrimThatAKillCutOffLeavesNoByte: an erasure that comes later finds nothing that
// only a restart could overwrite.
func TestATrimThatAKillCutOffLeavesNoByte(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), Options{})
	appended(t, s.Log, "s", 0, textEntries(secretText, 800))
	require.NoError(t, s.Seal(t.Context(), "s"))
	_, err := s.Purge(t.Context(), purgeNow)
	require.NoError(t, err)
	s = s.cutOff(func(ctx context.Context) error {
		_, err := s.Trim(ctx, "s", 500)
		return err
	})
	s.erase("s")
	s.nowhere()
}
