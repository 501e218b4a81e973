package maintenance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/store"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/integration/testkit"
)

// lifecycleSeeds is how many seeds are tried in full unless HELIX_SEEDS is set.
const lifecycleSeeds = 100

// TestLifecycle holds two nodes of one log at each of their requests, see
// logtest.Lifecycle. HELIX_SEEDS is how many seeds are tried, and HELIX_SEED repeats one
// alone, request by request, see TestASeedRepeatsAlone. Some seeds have their log in
// files, in which every byte of an erased session is searched for.
func TestLifecycle(t *testing.T) {
	if s := os.Getenv(logtest.SeedVariable); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		world := newLifecycle(t, seed%lifecycleDisk == 0)
		require.NoError(t, world.run(t, seed))
		world.close(t)
		return
	}
	seeds := uint64(testkit.Count(t, "HELIX_SEEDS", testkit.Times(lifecycleSeeds)))
	first := uint64(testkit.Count(t, "HELIX_FIRST_SEED", 1)) // the same ones each time: make simulate tries new ones
	t.Logf("seeds %d to %d: %s=n repeats one of them", first, first+seeds-1, logtest.SeedVariable)
	began := time.Now()
	var next, failed atomic.Uint64
	var wg sync.WaitGroup
	for range lifecycleWorlds * runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				from := next.Add(lifecycleShare) - lifecycleShare
				if from >= seeds || failed.Load() > 0 {
					return
				}
				var memory, disk *lifecycle
				for i := from; i < min(from+lifecycleShare, seeds); i++ {
					seed := first + i
					world := &memory
					if seed%lifecycleDisk == 0 {
						world = &disk
					}
					if *world == nil {
						*world = newLifecycle(t, seed%lifecycleDisk == 0)
					}
					if err := (*world).run(t, seed); err != nil {
						failed.Add(1)
						t.Errorf("after %d seeds: %v", i+1, err)
						break
					}
				}
				for _, world := range []*lifecycle{memory, disk} {
					if world != nil {
						world.close(t)
					}
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d seeds in %v", seeds, time.Since(began).Round(time.Second))
}

// TestSeedsThatHaveFailed repeats seeds that have found a defect.
func TestSeedsThatHaveFailed(t *testing.T) {
	t.Parallel()
	testkit.Sequential(t)
	for _, seed := range []uint64{
		61011630, // purged records came back: the server had rebuilt its index from the block
		63018645, // a failed append removed another one's payload, whose record followed a trimmed one
		1155,     // an append whose session was erased at once was repeated
		65066678, // an append was acknowledged though an erasure had removed its payload
		64076820, // a trim left segments below the floor of an interrupted one
		62077074, // a purge failed after another node had ended an erasure that it wanted to finish
	} {
		world := newLifecycle(t, seed%lifecycleDisk == 0)
		require.NoError(t, world.run(t, seed))
		world.close(t)
	}
}

// TestASeedRepeatsAlone: a seed has the same operations, results and requests in a server
// that has had other seeds as in a new one, also where copies are restored.
func TestASeedRepeatsAlone(t *testing.T) {
	testkit.Long(t)
	testkit.Sequential(t)
	t.Parallel()
	notes := func(seeds ...uint64) (lines []string) {
		world := newLifecycle(t, seeds[0]%lifecycleDisk == 0)
		defer world.close(t)
		for _, seed := range seeds {
			lines = nil
			world.Note = func(line string) { lines = append(lines, line) }
			require.NoError(t, world.run(t, seed))
		}
		return lines
	}
	for _, seeds := range [][]uint64{{43, 44, 45}, {40, 60}} {
		var alone, again []string
		for range 3 { // on a busy machine a request may time out and be repeated
			alone, again = notes(seeds[len(seeds)-1]), notes(seeds...)
			if slices.Equal(alone, again) {
				break
			}
		}
		require.Greater(t, len(alone), 10)
		require.Equal(t, alone, again)
	}
}

const (
	// lifecycleShare is how many seeds have one server.
	lifecycleShare = 250
	// lifecycleWorlds is how many servers run at once for each processor: one of them
	// mostly waits for messages between its goroutines.
	lifecycleWorlds = 4
	// lifecycleDisk is which share of the seeds has files, and lifecycleRestored in which
	// share copies may be restored.
	lifecycleDisk     = 10
	lifecycleRestored = 15
	// lifecycleGrown is in which share, of those with files, the log has grown.
	lifecycleGrown = 20
	// lifecycleFull is which share has payloads as large as those that a log keeps as
	// blobs. In the others smaller ones are blobs: encoding them takes most of a seed's time.
	lifecycleFull  = 50
	lifecycleSmall = 2 << 10
)

// lifecycle is a server, and two nodes of a log on it.
type lifecycle struct {
	logtest.Lifecycle
	srv      *embed.Server
	dir      string // empty: in memory
	nodes    [2]*wholeLog
	live     chan *nats.Msg
	stored   map[string][]logtest.StoredRecord
	secrets  []string
	conns    [2]*nats.Conn
	kept     string     // a session that is never erased
	last     uint64     // its last record
	inline   int        // the largest payload that is no blob
	there    *lifecycle // another server, into which copies are restored
	finished bool       // its restore
	end      []func()
}

func newLifecycle(t *testing.T, disk bool) *lifecycle {
	w := &lifecycle{stored: map[string][]logtest.StoredRecord{}, live: make(chan *nats.Msg, 1<<16)}
	dir, err := os.MkdirTemp("", "lifecycle")
	require.NoError(t, err)
	w.end = append(w.end, func() { os.RemoveAll(dir) })
	w.srv, err = embed.Start(t.Context(), embed.Options{DataDir: dir, SyncInterval: time.Minute})
	require.NoError(t, err)
	holdFolder(t, dir)
	w.Steps = &logtest.Steps{}
	for i := range w.conns {
		w.conns[i], err = w.srv.Connect()
		require.NoError(t, err)
		w.end = append(w.end, w.conns[i].Close)
	}
	_, err = w.conns[0].ChanSubscribe(layout.LiveSubjects+"*", w.live)
	require.NoError(t, err)
	require.NoError(t, w.conns[0].Flush())
	if disk {
		w.dir = dir
		w.Secrets = func(text string) { w.secrets = append(w.secrets, text) }
		w.Beside = func(context.Context) error { return w.beside(t.Context()) } // in one step
	}
	w.LargePoint = "publish " + layout.BlobSubjects
	w.Stored, w.Left, w.Finish = w.storedOf, w.left, w.finish
	w.Seal = func(ctx context.Context, node int, session string) error { return w.nodes[node].Seal(ctx, session) }
	w.Tail = w.tail
	w.Purge = func(ctx context.Context, node int, sealed time.Time) error {
		_, err := w.nodes[node].purgeAll(ctx, 0, func() time.Time { return sealed })
		return err
	}
	w.Open = func(ctx context.Context) error {
		l, err := Open(withHook(ctx, w.Steps.Step), w.conns[0], w.options())
		if err == nil {
			err = l.Close()
		}
		return err
	}
	w.Resume = func(ctx context.Context, node int, session string, at *uint64, known *bool, yield func(eventlog.Record) bool) error {
		c := store.Cursor{At: *at, Known: *known, Resumed: true}
		_, err := w.nodes[node].live.CatchUp(ctx, session, &c, func(r eventlog.Record, _ error) bool { return yield(r) })
		*at, *known = c.At, c.Known
		return err
	}
	return w
}

// run runs one seed, with new streams and nodes, so that it can be repeated alone. In files, a
// session that stays has records in every block.
func (w *lifecycle) run(t *testing.T, seed uint64) (err error) {
	w.inline = lifecycleSmall
	if seed%lifecycleFull == 0 {
		w.inline = store.InlineBytes
	}
	w.Nodes, w.Large, w.Restore = make([]eventlog.Log, len(w.nodes)), w.inline+1, nil
	w.clear(t)
	if w.dir != "" && seed%lifecycleGrown == 0 {
		w.grow(t, seed)
	}
	for i := range w.nodes {
		require.NoError(t, w.enter(t.Context(), i))
	}
	var there *lifecycle // where copies were restored
	if seed%lifecycleRestored == 0 {
		w.Restore = func(end uint64, copies []logtest.LifecycleCopy) *logtest.LifecycleRestored {
			there = w.empty(t)
			return there.restored(t.Context(), end, copies)
		}
	}
	if w.dir != "" {
		require.NoError(t, w.Purge(t.Context(), 0, time.Now()))
		w.kept, w.last = fmt.Sprintf("kept%d", seed), 0
		for range 5 {
			require.NoError(t, w.beside(t.Context()))
		}
		require.NoError(t, w.nodes[0].Seal(t.Context(), w.kept))
	}
	err = errors.Join(w.Run(t.Context(), seed), w.scan())
	if there != nil && there.finished { // otherwise nothing was erased there
		err = errors.Join(err, there.scan())
	}
	return err
}

// options are those of a node.
func (w *lifecycle) options() link.Options {
	o := link.Options{Memory: w.dir == "", Durability: "interval=1ns"}
	if w.dir != "" {
		o.Server = w.srv
	}
	return o
}

// enter opens a node in place of the present one.
func (w *lifecycle) enter(ctx context.Context, node int) error {
	if l := w.nodes[node]; l != nil {
		l.Close()
	}
	w.nodes[node], w.Nodes[node] = nil, nil
	l, err := Open(link.WithTuning(ctx, link.Tuning{Hook: w.Steps.Step, Few: 4, Far: 20, Ahead: 1, Inline: w.inline}), w.conns[node], w.options())
	if err != nil {
		return err
	}
	w.nodes[node] = whole(l)
	w.Nodes[node] = w.nodes[node]
	return nil
}

// grow makes a log that has grown, in which the seed's first sessions stay where they were, by the
// marks of erasures that are done, and later ones don't.
func (w *lifecycle) grow(t *testing.T, seed uint64) {
	for _, partitions := range []int{1, 3} {
		o := link.Options{Durability: "interval=1ns", Server: w.srv, Partitions: partitions, Grow: true}
		l, err := Open(withHook(t.Context(), unhooked), w.conns[0], o)
		require.NoError(t, err)
		if partitions == 1 {
			for i := range 1 + seed/lifecycleGrown%2 {
				session := fmt.Sprintf("s%d-%d", seed, i)
				storetest.Appended(t, l, session, 0, storetest.TextEntries(session, 1))
				_, err := l.Erase(t.Context(), session)
				require.NoError(t, err)
			}
		}
		require.NoError(t, l.Close())
	}
	w.Stored("")
	w.stored = map[string][]logtest.StoredRecord{}
}

// beside appends to the session that stays.
func (w *lifecycle) beside(ctx context.Context) (err error) {
	w.last, err = w.nodes[0].Append(ctx, w.kept, w.last, storetest.TextEntries(w.kept, 1))
	return err
}

// scan searches the server's files for erased text.
func (w *lifecycle) scan() error {
	if len(w.secrets) == 0 {
		return nil
	}
	slices.Sort(w.secrets)
	files, err := testkit.Scan(context.Background(), w.dir, slices.Compact(w.secrets)...)
	if err == nil && len(files) > 0 {
		err = fmt.Errorf("secrets are left in %v", files)
	}
	w.secrets = nil
	return err
}

// tail seals what a node has in memory of a session, as its sealer would in the end.
func (w *lifecycle) tail(ctx context.Context, node int, session string) error {
	l := w.nodes[node]
	s := l.sealerOf(session)
	s.mu.Lock()
	t := s.tails[session]
	s.mu.Unlock()
	if t == nil || t.count == 0 {
		return nil
	}
	l.Lock(ctx, &s.working)
	defer s.working.Unlock()
	s.mu.Lock()
	work := s.work(t)
	s.mu.Unlock()
	work.all = true
	s.seal(ctx, []*sealing{work})
	return work.err
}

// storedOf returns the republished records, which come before the answer.
func (w *lifecycle) storedOf(session string) []logtest.StoredRecord {
	if err := w.conns[0].Flush(); err != nil {
		panic(err)
	}
	for len(w.live) > 0 {
		m := <-w.live
		r, err := wire.RecordOf(m.Header, m.Data)
		if err != nil {
			panic(err)
		}
		id, _ := layout.SessionID(strings.TrimPrefix(m.Subject, layout.LiveSubjects))
		since, err := strconv.ParseUint(r.Since, 10, 64)
		w.stored[id] = append(w.stored[id], logtest.StoredRecord{
			Sequence: r.Sequence, Previous: r.Previous, Tombstone: wire.IsErased(m.Header), Created: err == nil, Since: since, Writer: r.Writer, Ordinal: r.Ordinal,
		})
	}
	return w.stored[session]
}

func (w *lifecycle) left(ctx context.Context, session string, first uint64, sure bool) (left []string, err error) {
	l := w.nodes[0]
	_, subject, err := l.Place(session)
	if err != nil {
		return nil, err
	}
	if err := w.forget(ctx, session); err != nil { // an hour later
		return nil, err
	}
	p := l.PartitionOf(session)
	for stream, subjects := range map[string][]string{
		layout.LogStream(p):     {subject},
		layout.SegmentStream(p): {layout.SegmentSubject(session, p), layout.FloorSubject(session, p)},
		layout.BlobStream:       {l.BlobPrefix(session) + ">"},
	} {
		for _, subject := range subjects {
			for at := uint64(0); ; {
				m, err := l.LeaderGet(ctx, stream, map[string]any{"seq": at + 1, "next_by_subj": subject})
				if err != nil {
					break
				}
				at = m.Sequence
				of := at
				switch stream {
				case layout.SegmentStream(p):
					of, _ = wire.Reaches(m)
				case layout.BlobStream:
					after, _ := strconv.ParseUint(m.Header.Get(wire.HeaderAfter), 10, 64)
					if of = after; after == 0 && (first < 1<<63 || !sure) {
						continue
					}
				}
				if of < first {
					left = append(left, fmt.Sprintf("message %d on %s, for %d", at, m.Subject, of))
				}
			}
		}
	}
	slices.Sort(left)
	return left, nil
}

// finish ends the erasure of a session, whose eraser may have died.
func (w *lifecycle) finish(ctx context.Context, session string) error {
	return w.until(ctx, session, time.Now(), func(e *store.Erasing) bool { return e.At == 0 || e.Done })
}

// forget removes the mark of an erasure, as happens an hour after its end.
func (w *lifecycle) forget(ctx context.Context, session string) error {
	return w.until(ctx, session, time.Now().Add(store.DoneFor+time.Minute), func(e *store.Erasing) bool { return e.At == 0 })
}

// until continues an erasure until its mark is as wanted.
func (w *lifecycle) until(ctx context.Context, session string, now time.Time, wanted func(*store.Erasing) bool) error {
	l := w.nodes[0].Maintenance
	for range 10 {
		if e, err := l.ErasingOf(ctx, session); err != nil || wanted(e) {
			return err
		}
		if err := finishAt(ctx, l, session, now); err != nil {
			return err
		}
	}
	e, err := l.ErasingOf(ctx, session)
	return fmt.Errorf("an erasure that does not end: %+v, %w", e, err)
}

// lose removes the log's stream: a node that opens it then leaves the segments as they are.
func (w *lifecycle) lose(t *testing.T) {
	ctx, l := context.Background(), w.nodes[0].Maintenance
	storetest.Appended(t, l, "lost", 0, storetest.TextEntries("lost", 3))
	require.NoError(t, l.Seal(ctx, "lost"))
	_, before, err := l.LastSegment(ctx, "lost")
	require.NoError(t, err)
	require.NoError(t, l.JS.DeleteStream(ctx, layout.LogStream(l.PartitionOf("lost"))))
	for range 2 {
		if err := w.Open(ctx); err == nil {
			t.Error("a log opens that has lost its records")
		}
	}
	s, after, err := l.LastSegment(ctx, "lost")
	if err != nil || s == nil || before != after {
		t.Errorf("opening a log that has lost its records removed a segment: %v", err)
	}
}

func (w *lifecycle) close(t *testing.T) {
	if !t.Failed() {
		w.lose(t)
	}
	w.stop()
	if w.there != nil {
		w.there.stop()
	}
}

func (w *lifecycle) stop() {
	for _, l := range w.nodes {
		if l != nil {
			l.Close()
		}
	}
	for _, end := range slices.Backward(w.end[1:]) {
		end()
	}
	w.srv.Stop()
	w.end[0]()
}
