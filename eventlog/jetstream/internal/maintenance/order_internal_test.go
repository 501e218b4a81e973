package maintenance

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/store"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/integration/testkit"
)

// withHook returns the context of a log whose requests a test holds.
func withHook(ctx context.Context, h link.Hook) context.Context {
	return link.WithTuning(ctx, link.Tuning{Hook: h})
}

// openHooked opens a log whose requests a test holds.
func openHooked(t *testing.T, nc *nats.Conn, h link.Hook) *Maintenance {
	t.Helper()
	open := false
	l, err := Open(withHook(t.Context(), func(ctx context.Context, point string, do func(context.Context) error) error {
		if !open {
			return do(ctx)
		}
		return h(ctx, point, do)
	}), nc, link.Options{})
	require.NoError(t, err)
	open = true
	t.Cleanup(func() { l.Close() })
	return l
}

// requireNothing requires that no stream has a message, except the marks of erasures that
// are done, among them the session's.
func requireNothing(t *testing.T, l *Maintenance, session string) {
	t.Helper()
	for _, stream := range []string{layout.LogStream(0), layout.SegmentStream(0), layout.BlobStream} {
		s, err := l.JS.Stream(t.Context(), stream)
		require.NoError(t, err)
		info, err := s.Info(t.Context(), natsjs.WithSubjectFilter(">"))
		require.NoError(t, err)
		for subject, n := range info.State.Subjects {
			require.True(t, strings.HasPrefix(subject, layout.ErasedSubjects), subject)
			require.EqualValues(t, 1, n)
		}
	}
	e, err := l.ErasingOf(t.Context(), session)
	require.NoError(t, err)
	require.True(t, e.At == 0 || e.Done && len(e.Parts) == 0, "%+v", e)
	_, err = l.Head(t.Context(), session)
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
}

// TestASealerOfAnotherNodeBesideAnErasure: at each of the erasure's requests another node
// seals the session's next segment, or its first; nothing of it is left.
func TestASealerOfAnotherNodeBesideAnErasure(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	testkit.Sequential(t)
	for _, sealed := range []int{0, 1, 5} {
		t.Run(fmt.Sprintf("%d sealed", sealed), func(t *testing.T) {
			t.Parallel()
			l := openLog(t, link.Options{})
			for at := range testkit.Positions(5) {
				over := false
				passed := t.Run(fmt.Sprintf("before request %d", at), func(t *testing.T) {
					session := fmt.Sprint("s", at)
					steps := 0
					var other *Maintenance
					a := openHooked(t, l.Conn, func(ctx context.Context, point string, do func(context.Context) error) error {
						if steps++; steps == at+1 {
							s := other.sealerOf(session)
							s.mu.Lock()
							w := s.work(s.tails[session])
							s.mu.Unlock()
							w.all = true
							s.seal(context.WithoutCancel(ctx), []*sealing{w})
						}
						return do(ctx)
					})
					other = openHooked(t, l.Conn, func(ctx context.Context, _ string, do func(context.Context) error) error { return do(ctx) })
					head := uint64(0)
					for range sealed {
						head = storetest.Appended(t, other, session, head, storetest.TextEntries("secret", 3))
						require.NoError(t, other.Seal(t.Context(), session))
					}
					storetest.Appended(t, other, session, head, storetest.TextEntries("secret tail", 4))
					steps = 0
					_, err := a.Erase(t.Context(), session)
					require.NoError(t, err)
					requireNothing(t, l, session)
					over = steps <= at // the erasure has fewer requests
				})
				if over || !passed {
					break
				}
			}
		})
	}
}

// TestABlobThatAnErasureTakesFromAnAppend: an append finds that the session has its blob,
// the session is erased at any of its requests, and the append creates it again.
func TestABlobThatAnErasureTakesFromAnAppend(t *testing.T) {
	t.Parallel()
	large := storetest.TextEntries("x", 1)
	large[0].Payload = bytes.Repeat([]byte("x"), store.InlineBytes+1)
	for at, done := 0, false; !done; at++ {
		l := openLog(t, link.Options{})
		steps := 0
		late := openHooked(t, l.Conn, func(ctx context.Context, _ string, do func(context.Context) error) error {
			if steps++; steps == at+1 {
				_, _ = l.Erase(context.WithoutCancel(ctx), "s")
			}
			return do(ctx)
		})
		storetest.Appended(t, l, "s", 0, large)
		if _, err := late.Append(t.Context(), "s", 0, large); err == nil {
			storetest.RequireRecords(t, l, "s", large)
		}
		done = steps <= at
		l.Close()
	}
}

// TestAnAppendThatFailsLeavesTheNewSessionItsBlob: its session was erased, and created
// again with the same blob.
func TestAnAppendThatFailsLeavesTheNewSessionItsBlob(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	large := storetest.TextEntries("x", 1)
	large[0].Payload = bytes.Repeat([]byte("x"), store.InlineBytes+1)
	head := storetest.Appended(t, l, "s", 0, storetest.TextEntries("old", 1))
	published := 0
	late := openHooked(t, l.Conn, func(ctx context.Context, point string, do func(context.Context) error) error {
		if strings.HasPrefix(point, "publish ") {
			if published++; published == 2 { // its blob is stored
				_, err := l.Erase(context.WithoutCancel(ctx), "s")
				require.NoError(t, err)
				storetest.Appended(t, l, "s", 0, large)
			}
		}
		return do(ctx)
	})
	_, err := late.Append(t.Context(), "s", head, large)
	require.Error(t, err)
	require.Equal(t, 2, published)
	storetest.RequireRecords(t, l, "s", large)
}

// TestTwoTrimsAtOnceNeverLowerTheFloor: the one that keeps more is slower.
func TestTwoTrimsAtOnceNeverLowerTheFloor(t *testing.T) {
	t.Parallel()
	for at := range testkit.Positions(3) {
		l := openLog(t, link.Options{})
		var heads []uint64
		head := uint64(0)
		for range 4 {
			head = storetest.Appended(t, l, "s", head, storetest.TextEntries("x", 3))
			heads = append(heads, head)
			require.NoError(t, l.Seal(t.Context(), "s"))
		}
		_, err := l.Purge(t.Context(), storetest.PurgeNow)
		require.NoError(t, err)
		steps := 0
		slow := openHooked(t, l.Conn, func(ctx context.Context, _ string, do func(context.Context) error) error {
			if steps++; steps == at+1 {
				floor, err := l.Trim(context.WithoutCancel(ctx), "s", heads[2])
				require.NoError(t, err)
				require.GreaterOrEqual(t, floor, heads[2])
			}
			return do(ctx)
		})
		_, err = slow.Trim(t.Context(), "s", heads[0])
		require.NoError(t, err)
		done := steps <= at
		floor, err := l.Floor(t.Context(), "s")
		require.NoError(t, err)
		if !done {
			require.Equal(t, heads[2], floor, "at step %d", at)
		}
		for _, err := range l.Read(t.Context(), "s", floor, 0) {
			require.NoError(t, err)
		}
		l.Close()
		if done {
			break
		}
	}
}

// TestATrimLeavesNoFloorOfAnErasedSession: it is erased at any of the trim's requests.
func TestATrimLeavesNoFloorOfAnErasedSession(t *testing.T) {
	t.Parallel()
	for at := range testkit.Positions(3) {
		l := openLog(t, link.Options{})
		head := storetest.Appended(t, l, "s", 0, storetest.TextEntries("x", 3))
		require.NoError(t, l.Seal(t.Context(), "s"))
		storetest.Appended(t, l, "s", head, storetest.TextEntries("x", 3))
		require.NoError(t, l.Seal(t.Context(), "s"))
		_, err := l.Purge(t.Context(), storetest.PurgeNow)
		require.NoError(t, err)
		steps := 0
		trims := openHooked(t, l.Conn, func(ctx context.Context, _ string, do func(context.Context) error) error {
			if steps++; steps == at+1 {
				_, err := l.Erase(context.WithoutCancel(ctx), "s")
				require.NoError(t, err)
			}
			return do(ctx)
		})
		_, _ = trims.Trim(t.Context(), "s", head)
		done := steps <= at
		if !done {
			requireNothing(t, l, "s")
		}
		l.Close()
		if done {
			break
		}
	}
}

// TestAnAppendThatArrivesAfterAnErasureIsNoSession: it follows a purged record, so that
// its comparison can't fail, and its caller has given up.
func TestAnAppendThatArrivesAfterAnErasureIsNoSession(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	expected := storetest.Appended(t, l, "s", 0, storetest.TextEntries("old", 10))
	_, err := l.Purge(t.Context(), storetest.PurgeNow)
	require.NoError(t, err)
	var arrive func(context.Context) error
	late := openHooked(t, l.Conn, func(ctx context.Context, point string, do func(context.Context) error) error {
		if arrive = do; strings.HasPrefix(point, "publish ") {
			return eventlog.ErrOutcomeUnknown
		}
		return do(ctx)
	})
	for _, n := range []int{1, 3} {
		_, err = late.Append(t.Context(), "s", expected, storetest.TextEntries("compared with nothing", 1)) // as a first try, it conflicts
		require.ErrorIs(t, err, eventlog.ErrOutcomeUnknown)
		_, subject, err := l.Place("s")
		require.NoError(t, err)
		a, err := l.NewAppend(t.Context(), "s", subject, expected, storetest.TextEntries("late", n))
		require.NoError(t, err)
		a.FollowPurged()
		_, err = late.Publish(t.Context(), a.Messages)
		require.ErrorIs(t, err, eventlog.ErrOutcomeUnknown)
		_, err = l.Erase(t.Context(), "s")
		require.NoError(t, err)
		require.NoError(t, arrive(t.Context()))

		_, err = eventlog.AppendOnce(t.Context(), whole(l), "s", "w", expected, storetest.TextEntries("late", n))
		require.ErrorIs(t, err, eventlog.ErrSessionNotFound, "it was not appended")
		requireNothing(t, l, "s")
		require.NoError(t, arrive(t.Context()))
		recreated := storetest.TextEntries("new", 2)
		expected = storetest.Appended(t, l, "s", 0, recreated)
		storetest.RequireRecords(t, l, "s", recreated)
		_, err = l.Purge(t.Context(), storetest.PurgeNow)
		require.NoError(t, err)
	}
}

// TestASessionThatIsCreatedBesideAnOldMarkStays: an older version has erased one of its
// id, and its mark says only that.
func TestASessionThatIsCreatedBesideAnOldMarkStays(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	for at := range testkit.Positions(5) {
		l := openLog(t, link.Options{})
		steps, recreated := 0, storetest.TextEntries("new", 3)
		h := openHooked(t, l.Conn, func(ctx context.Context, _ string, do func(context.Context) error) error {
			if steps++; steps == at+1 {
				storetest.Appended(t, l, "s", 0, recreated)
				require.NoError(t, l.Seal(context.WithoutCancel(ctx), "s"))
			}
			return do(ctx)
		})
		_, err := l.StoreMessage(t.Context(), &nats.Msg{Subject: layout.ErasedSubject("s", 0), Header: nats.Header{}})
		require.NoError(t, err)
		steps = 0
		_, err = h.FinishErasures(t.Context(), true)
		require.NoError(t, err)
		done := steps <= at
		if !done {
			storetest.RequireRecords(t, l, "s", recreated)
			s, _, err := l.LastSegment(t.Context(), "s")
			require.NoError(t, err)
			require.NotNil(t, s)
		}
		l.Close()
		if done {
			break
		}
	}
}

// TestALostLogIsNotCreatedAgain: whatever remains may be the only copy of its sessions.
func TestALostLogIsNotCreatedAgain(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	for _, durability := range []eventlog.Durability{"interval=1s", eventlog.DurabilityFsync, ""} {
		for _, missing := range []string{layout.LogStream(0), layout.SegmentStream(0), layout.BlobStream} {
			for _, how := range []string{"removed", "meta damaged", "made again"} {
				t.Run(string(durability)+" "+missing+" "+how, func(t *testing.T) {
					dir := t.TempDir()
					o := link.Options{Durability: durability}
					open := func() (*Maintenance, func(), error) {
						srv, err := embed.Start(t.Context(), embed.Options{DataDir: dir, SyncInterval: time.Second})
						require.NoError(t, err)
						nc, err := srv.Connect()
						require.NoError(t, err)
						l, err := Open(t.Context(), nc, o)
						return l, func() {
							if l != nil {
								l.Close()
							}
							nc.Close()
							srv.Stop()
						}, err
					}
					l, stop, err := open()
					require.NoError(t, err)
					kept := storetest.TextEntries("kept", 300)
					kept[0].Payload = bytes.Repeat([]byte("x"), store.InlineBytes+1)
					storetest.Appended(t, l, "s", 0, kept)
					require.NoError(t, l.Seal(t.Context(), "s"))
					if how == "made again" { // as earlier versions did
						if missing != layout.LogStream(0) {
							stop()
							return
						}
						s, err := l.JS.Stream(t.Context(), missing)
						require.NoError(t, err)
						require.NoError(t, l.JS.DeleteStream(t.Context(), missing))
						_, err = l.JS.CreateStream(t.Context(), s.CachedInfo().Config)
						require.NoError(t, err)
						stop()
					} else {
						stop()
						var folder string
						require.NoError(t, filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
							if d.IsDir() && d.Name() == missing {
								folder = p
							}
							return err
						}))
						if how == "removed" {
							require.NoError(t, os.RemoveAll(folder))
						} else {
							p := filepath.Join(folder, "meta.inf")
							b, err := os.ReadFile(p)
							require.NoError(t, err)
							b[len(b)/2] ^= 1
							require.NoError(t, os.WriteFile(p, b, 0o600))
						}
					}
					left := -1
					for range 2 { // also on a retry
						_, stop, err = open()
						stop()
						require.ErrorContains(t, err, missing)
						require.ErrorContains(t, err, "restore a backup")
						files, err := testkit.Scan(t.Context(), dir, "kept 299")
						require.NoError(t, err)
						require.NotEmpty(t, files)
						if left >= 0 {
							require.Len(t, files, left)
						}
						left = len(files)
					}
				})
			}
		}
	}
}

// TestANodeThatOpensDropsNothingThatAnotherSeals: the other one seals between its reads
// of the log and of the segments.
func TestANodeThatOpensDropsNothingThatAnotherSeals(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{Durability: "interval=1ms"})
	stop := make(chan struct{})
	done := make(chan struct{})
	var head atomic.Uint64
	go func() {
		defer close(done)
		for last := uint64(0); ; {
			select {
			case <-stop:
				return
			default:
			}
			var err error
			if last, err = l.Append(context.Background(), "s", last, storetest.TextEntries("x", 20)); err != nil {
				return
			}
			head.Store(last)
			_ = l.Seal(context.Background(), "s")
		}
	}()
	for range 30 {
		other, err := Open(t.Context(), l.Conn, link.Options{Durability: "interval=1ms"})
		require.NoError(t, err)
		other.Close()
	}
	close(stop)
	<-done
	require.NoError(t, l.Seal(t.Context(), "s"))
	s, _, err := l.LastSegment(t.Context(), "s")
	require.NoError(t, err)
	require.Equal(t, head.Load(), s.Last())
	_, err = l.compare(t.Context(), "s", head.Load()+1)
	require.NoError(t, err)
}

// TestABacklogIsSealedPieceByPiece: segments of one round stay, however short the round
// was, and no more than a piece is in memory.
func TestABacklogIsSealedPieceByPiece(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	l := openHooked(t, openLog(t, link.Options{}).Conn, func(ctx context.Context, _ string, do func(context.Context) error) error { return do(ctx) })
	s := l.sealerOf("s")
	head := uint64(0)
	const n = 3*pieceRecords + wire.SegmentRecords/2
	for range n / 500 {
		head = storetest.Appended(t, l, "s", head, storetest.TextEntries("x", 500))
	}
	w := &sealing{session: "s", last: head, all: true}
	require.NoError(t, s.find(t.Context(), w))
	require.NoError(t, s.readPiece(t.Context(), w))
	require.True(t, w.rest)
	require.LessOrEqual(t, len(w.records), pieceRecords)

	// A round whose time ends at each of its requests in turn.
	before := uint64(0)
	for round := 1; ; round++ {
		require.Less(t, round, 1000)
		ctx, cancel := context.WithCancel(t.Context())
		sent := 0
		short := openHooked(t, l.Conn, func(ctx context.Context, point string, do func(context.Context) error) error {
			if strings.HasPrefix(point, "publish ") {
				if sent++; sent > 3 {
					cancel()
				}
			}
			return do(ctx)
		})
		w := &sealing{session: "s", last: head, all: true}
		sealer := short.sealerOf("s")
		if err := sealer.find(ctx, w); err == nil {
			sealer.sealRead(ctx, w)
		}
		cancel()
		last, _, err := l.LastSegment(t.Context(), "s")
		require.NoError(t, err)
		require.NotNil(t, last)
		require.Greater(t, last.Last(), before)
		if before = last.Last(); before == head {
			break
		}
	}
	count, err := l.compare(t.Context(), "s", head+1)
	require.NoError(t, err)
	require.Equal(t, n/500*500, count)
}
