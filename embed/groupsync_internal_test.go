package embed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/helixd/helixd/embed/internal/blocks"
	"github.com/helixd/helixd/embed/internal/datadir"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// startGroup starts a server that leaves the sync to its callers, with a stream.
func startGroup(t *testing.T) (*Server, natsjs.JetStream) {
	t.Helper()
	s, err := Start(t.Context(), Options{DataDir: t.TempDir(), GroupSync: true})
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	if !s.GroupSync() {
		t.Skip("the temporary folder's file system may lose a renamed file")
	}
	nc, err := s.Connect()
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := natsjs.New(nc)
	require.NoError(t, err)
	return s, js
}

func makeStream(t *testing.T, js natsjs.JetStream, name string) {
	t.Helper()
	_, err := js.CreateStream(t.Context(), natsjs.StreamConfig{Name: name, Subjects: []string{name + ".*"}, Storage: natsjs.FileStorage})
	require.NoError(t, err)
}

// plug is a disk whose power can be pulled: it has what was synced and nothing else.
type plug struct {
	from, to string
	mu       sync.Mutex
	entries  map[string]bool // that a synced folder has, or had
}

// sync copies a file as it is, and notes what a folder has.
func (p *plug) sync(f *os.File) error {
	name, err := filepath.Rel(p.from, f.Name())
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if info.IsDir() {
		entries, err := os.ReadDir(f.Name())
		for _, e := range entries {
			p.entries[filepath.Join(name, e.Name())] = true
		}
		return err
	}
	if err := os.MkdirAll(filepath.Dir(filepath.Join(p.to, name)), 0o700); err != nil {
		return err
	}
	copied, err := os.OpenFile(filepath.Join(p.to, name), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer copied.Close()
	had, err := copied.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	_, err = io.Copy(copied, io.NewSectionReader(f, had, info.Size()-had)) // blocks grow at their end only
	return err
}

// pull leaves what the disk has.
func (p *plug) pull(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	require.NoError(t, filepath.WalkDir(p.to, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(p.to, path)
		if err != nil || p.entries[name] {
			return err
		}
		return os.Remove(path)
	}))
}

// TestSyncAll: a server that syncs by interval loses nothing after SyncAll, nor after Stop.
func TestSyncAll(t *testing.T) {
	t.Parallel()
	for name, sync := range map[string]func(*testing.T, *Server){
		"SyncAll": func(t *testing.T, s *Server) { require.NoError(t, s.SyncAll(t.Context())) },
		"Stop":    func(_ *testing.T, s *Server) { s.Stop() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := Start(t.Context(), Options{DataDir: t.TempDir(), SyncInterval: time.Hour})
			require.NoError(t, err)
			t.Cleanup(s.Stop)
			p := &plug{from: s.opts.DataDir, to: t.TempDir(), entries: map[string]bool{}}
			s.fsync = p.sync
			makeStream(t, connected(t, s), "S")
			_, err = connected(t, s).Publish(t.Context(), "S.a", []byte("x"))
			require.NoError(t, err)
			sync(t, s)
			p.pull(t)
			s.fsync = (*os.File).Sync

			again, err := Start(t.Context(), Options{DataDir: p.to})
			require.NoError(t, err)
			t.Cleanup(again.Stop)
			stream, err := connected(t, again).Stream(t.Context(), "S")
			require.NoError(t, err)
			require.EqualValues(t, 1, stream.CachedInfo().State.Msgs)
			for _, file := range []string{"meta.inf", "meta.sum"} {
				require.FileExists(t, filepath.Join(p.to, "jetstream", blocks.Account, "streams", "S", file))
			}
		})
	}
	s, err := Start(t.Context(), Options{DataDir: t.TempDir(), SyncInterval: time.Hour})
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	s.fsync = func(*os.File) error { return syscall.EIO }
	require.ErrorIs(t, s.SyncAll(t.Context()), syscall.EIO)
	s.fsync = (*os.File).Sync
}

func connected(t *testing.T, s *Server) natsjs.JetStream {
	t.Helper()
	nc, err := s.Connect()
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := natsjs.New(nc)
	require.NoError(t, err)
	return js
}

// TestAPowerLossKeepsWhatWasSynced: what Sync has returned for is there after the machine has
// lost its power, in blocks and streams that were new, too.
func TestAPowerLossKeepsWhatWasSynced(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	s, js := startGroup(t)
	p := &plug{from: s.opts.DataDir, to: t.TempDir(), entries: map[string]bool{}}
	s.group.sync = p.sync
	const streams, writers, each = 2, 8, 150
	payload := make([]byte, 8<<10) // more than one block a stream
	for i := range streams {
		makeStream(t, js, fmt.Sprint("S", i))
	}
	var wg sync.WaitGroup
	var acked [streams][]uint64
	var mu sync.Mutex
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				ack, err := js.Publish(t.Context(), fmt.Sprintf("S%d.%d", i%streams, w), payload)
				if err == nil {
					err = s.Sync(t.Context())
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				acked[i%streams] = append(acked[i%streams], ack.Sequence)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	p.pull(t)

	again, err := Start(t.Context(), Options{DataDir: p.to})
	require.NoError(t, err)
	t.Cleanup(again.Stop)
	nc, err := again.Connect()
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	left, err := natsjs.New(nc)
	require.NoError(t, err)
	for i, sequences := range acked {
		stream, err := left.Stream(t.Context(), fmt.Sprint("S", i))
		require.NoError(t, err)
		require.Len(t, sequences, writers*each/streams)
		for _, at := range sequences {
			m, err := stream.GetMsg(t.Context(), at)
			require.NoError(t, err, "message %d of stream %d", at, i)
			require.Len(t, m.Data, len(payload))
		}
	}
}

// TestSyncCoversOtherBlocks: blocks that are not a stream's last one are synced when they were
// replaced, and by SyncStreams also when a message in them was overwritten.
func TestSyncCoversOtherBlocks(t *testing.T) {
	t.Parallel()
	s, js := startGroup(t)
	makeStream(t, js, "S")
	payload := make([]byte, 512<<10)
	for range 40 { // some blocks
		_, err := js.Publish(t.Context(), "S.x", payload)
		require.NoError(t, err)
	}
	require.NoError(t, s.Sync(t.Context()))
	var mu sync.Mutex
	synced := map[string]bool{}
	s.group.sync = func(f *os.File) error {
		mu.Lock()
		defer mu.Unlock()
		synced[filepath.Base(f.Name())] = true
		return f.Sync()
	}
	stream, err := js.Stream(t.Context(), "S")
	require.NoError(t, err)
	require.NoError(t, stream.SecureDeleteMsg(t.Context(), 2))
	require.NoError(t, s.SyncStreams(t.Context(), "S"))
	require.True(t, synced["1.blk"], "synced: %v", synced)

	clear(synced)
	require.NoError(t, stream.Purge(t.Context(), natsjs.WithPurgeSequence(4))) // rewrites the first block
	require.NoError(t, s.Sync(t.Context()))
	require.True(t, synced["1.blk"], "synced: %v", synced)
	require.True(t, synced["msgs"], "synced: %v", synced)
}

// TestOneSyncForAll: who comes during a sync shares the next one.
func TestOneSyncForAll(t *testing.T) {
	s, js := startGroup(t)
	makeStream(t, js, "S")
	require.NoError(t, s.Sync(t.Context()))
	_, err := js.Publish(t.Context(), "S.x", nil)
	require.NoError(t, err)
	var rounds atomic.Int32
	began, release := make(chan struct{}, 100), make(chan struct{})
	s.group.sync = func(f *os.File) error {
		if filepath.Ext(f.Name()) == ".blk" {
			rounds.Add(1)
			began <- struct{}{}
			<-release
		}
		return nil
	}
	results := make(chan error, 51)
	go func() { results <- s.Sync(t.Context()) }()
	<-began
	left, leave := context.WithCancel(t.Context())
	leave()
	require.ErrorIs(t, s.Sync(left), context.Canceled, "a caller that leaves does not wait")
	_, err = js.Publish(t.Context(), "S.x", nil)
	require.NoError(t, err)
	for range 50 {
		go func() { results <- s.Sync(t.Context()) }()
	}
	require.Eventually(t, func() bool { // all have joined: none waits for the first round
		s.group.mu.Lock()
		defer s.group.mu.Unlock()
		return s.group.next != nil && s.group.next.joined == 51
	}, time.Minute, time.Millisecond)
	close(release)
	for range 51 {
		require.NoError(t, <-results)
	}
	require.EqualValues(t, 2, rounds.Load())
}

// TestAFailedSyncIsFinal: the kernel may have dropped what it could not write, so nothing is
// acknowledged from then on, whatever later syncs say.
func TestAFailedSyncIsFinal(t *testing.T) {
	s, js := startGroup(t)
	makeStream(t, js, "S")
	require.NoError(t, s.Sync(t.Context()))
	require.Empty(t, s.Refuses(false))
	broken := &os.PathError{Op: "sync", Path: "1.blk", Err: syscall.EIO}
	s.group.sync = func(*os.File) error { return broken }
	_, err := js.Publish(t.Context(), "S.x", nil)
	require.NoError(t, err)
	require.ErrorIs(t, s.Sync(t.Context()), syscall.EIO)
	s.group.sync = (*os.File).Sync
	require.ErrorIs(t, s.Sync(t.Context()), syscall.EIO)
	require.ErrorIs(t, s.SyncStreams(t.Context(), "S"), syscall.EIO)
	require.Contains(t, s.Refuses(false), "the disk of the data folder failed")
	require.NotEmpty(t, s.Refuses(true), "also what frees room")
}

// TestALackOfDescriptorsFailsOneSync: it says nothing about the disk, and the next sync covers
// what this one did not.
func TestALackOfDescriptorsFailsOneSync(t *testing.T) {
	g := newGroupSync(t.TempDir())
	var synced []string
	g.sync = func(f *os.File) error {
		synced = append(synced, filepath.Base(f.Name()))
		return nil
	}
	messages := filepath.Join(g.dir, "S", "msgs")
	require.NoError(t, os.MkdirAll(messages, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(messages, "1.blk"), []byte("x"), 0o600))
	require.NoError(t, os.Symlink("loop.blk", filepath.Join(messages, "loop.blk"))) // not a block's name
	require.NoError(t, os.Symlink("2.blk", filepath.Join(messages, "2.blk")))       // can't be opened
	require.Error(t, g.wait(t.Context()))
	require.NoError(t, g.failure())
	synced = nil
	require.NoError(t, os.Remove(filepath.Join(messages, "2.blk")))
	require.NoError(t, g.wait(t.Context()))
	require.Contains(t, synced, "1.blk")
}

// TestAStreamThatIsJustBeingMade: a sync that finds a stream's folder before its settings and
// messages leaves these to a later one.
func TestAStreamThatIsJustBeingMade(t *testing.T) {
	g := newGroupSync(t.TempDir())
	synced := map[string]int{}
	var mu sync.Mutex
	g.sync = func(f *os.File) error {
		mu.Lock()
		defer mu.Unlock()
		name, err := filepath.Rel(g.dir, f.Name())
		synced[name]++
		return err
	}
	require.NoError(t, g.wait(t.Context()), "there is no folder of streams")
	stream := filepath.Join(g.dir, "S")
	make := func() {
		t.Helper()
		require.NoError(t, os.MkdirAll(filepath.Join(stream, "msgs"), 0o700))
		for _, f := range []string{"meta.inf", "meta.sum", "msgs/1.blk"} {
			require.NoError(t, os.WriteFile(filepath.Join(stream, f), []byte("x"), 0o600))
		}
	}
	require.NoError(t, os.MkdirAll(stream, 0o700))
	require.NoError(t, g.wait(t.Context()))
	for range 2 {
		make()
		clear(synced)
		require.NoError(t, g.wait(t.Context()))
		for _, name := range []string{"S/meta.inf", "S/meta.sum", "S/msgs", "S", "S/msgs/1.blk"} {
			require.Equal(t, 1, synced[name], "%s: %v", name, synced)
		}
		require.NoError(t, os.RemoveAll(stream)) // and it is made again
		require.NoError(t, g.wait(t.Context()))
	}
}

// TestManyBlocksHoldUpNoAppend: a round looks at the new blocks of a large stream, not at all.
func TestManyBlocksHoldUpNoAppend(t *testing.T) {
	t.Parallel()
	g := newGroupSync(t.TempDir())
	var synced []string
	g.sync = func(f *os.File) error {
		synced = append(synced, filepath.Base(f.Name()))
		return nil
	}
	messages := filepath.Join(g.dir, "S", "msgs")
	require.NoError(t, os.MkdirAll(messages, 0o700))
	write := func(number int, text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(filepath.Join(messages, fmt.Sprint(number, ".blk")), []byte(text), 0o600))
	}
	for i := range 3 * fewBlocks {
		write(i+1, "x")
	}
	old := time.Now().Add(-time.Minute)
	require.NoError(t, os.Chtimes(g.dir, old, old)) // a folder that has just changed may change again unseen
	require.NoError(t, g.wait(t.Context()))
	require.NoError(t, g.syncStreams(t.Context(), []string{"S"}))
	for i := range 3 * fewBlocks {
		require.NoError(t, os.Chtimes(filepath.Join(messages, fmt.Sprint(i+1, ".blk")), old, old))
	}
	require.NoError(t, g.syncStreams(t.Context(), []string{"S"}))
	synced = nil
	write(3*fewBlocks, "xy")
	write(3*fewBlocks+1, "x")
	write(3*fewBlocks+2, "x")
	write(1, "y") // rewritten: for syncStreams
	require.NoError(t, g.wait(t.Context()))
	require.Equal(t, []string{fmt.Sprint(3*fewBlocks, ".blk"), fmt.Sprint(3*fewBlocks+1, ".blk"), fmt.Sprint(3*fewBlocks+2, ".blk"), "msgs"}, synced, "in order")
	synced = nil
	require.NoError(t, g.syncStreams(t.Context(), []string{"S"}))
	require.Contains(t, synced, "1.blk")
	require.Less(t, len(synced), 8, "what has not changed is not synced: %v", synced)
}

// TestSyncAfterStop: a server that has stopped promises nothing.
func TestSyncAfterStop(t *testing.T) {
	s, _ := startGroup(t)
	require.NoError(t, s.Sync(t.Context()), "there is no stream yet")
	s.Stop()
	require.True(t, errors.Is(s.Sync(t.Context()), errSyncStopped))
}

// TestWhoGroupSyncIsFor: where others may write or read the streams, the server syncs by itself.
func TestWhoGroupSyncIsFor(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"not asked": func(o *Options) { o.GroupSync = false },
		"user":      func(o *Options) { o.User, o.Password = "u", "p" },
		"cluster":   func(o *Options) { o.Cluster = &Cluster{} },
	} {
		o := Options{DataDir: t.TempDir(), GroupSync: true}
		require.Equal(t, datadir.OrdersRenames(o.DataDir), o.groupSync())
		change(&o)
		require.False(t, o.groupSync(), name)
		if o.Cluster == nil {
			opts, err := o.serverOptions()
			require.NoError(t, err)
			require.True(t, opts.SyncAlways, name)
		}
	}
	o := Options{DataDir: t.TempDir(), GroupSync: true, SyncInterval: time.Second}
	require.True(t, o.groupSync(), "only this process writes")
	opts, err := o.serverOptions()
	require.NoError(t, err)
	require.False(t, opts.SyncAlways)
}

// TestInterestCountsAllSubscriptions, those of clients from outside too.
func TestInterestCountsAllSubscriptions(t *testing.T) {
	s, err := Start(t.Context(), Options{DataDir: t.TempDir(), Listen: "127.0.0.1:0"})
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	require.Zero(t, s.Interest("helix.live.s"))
	subscribe := func(nc *nats.Conn, err error) {
		t.Helper()
		require.NoError(t, err)
		t.Cleanup(nc.Close)
		_, err = nc.SubscribeSync("helix.live.>")
		require.NoError(t, err)
		require.NoError(t, nc.Flush())
	}
	subscribe(s.Connect())
	require.Equal(t, 1, s.Interest("helix.live.s"))
	subscribe(nats.Connect(s.ClientURL()))
	require.Equal(t, 2, s.Interest("helix.live.s"))
	require.Zero(t, s.Interest("other.s"))
}
