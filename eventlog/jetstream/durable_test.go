package jetstream_test

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/integrity"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/jetstreamtest"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/eventlog/logtest"
)

// slowDisk is a server whose syncs end, or fail, when the test decides.
type slowDisk struct {
	*embed.Server
	slow  atomic.Bool
	began chan struct{}
	ends  chan error
}

func (d *slowDisk) Sync(ctx context.Context) error {
	if !d.slow.Load() {
		return d.Server.Sync(ctx)
	}
	d.began <- struct{}{}
	select {
	case err := <-d.ends:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func openSlowDisk(t *testing.T, o embed.Options) (*slowDisk, *nats.Conn, *jetstream.Log) {
	t.Helper()
	o.GroupSync = true
	srv, nc := embedtest.Start(t, o)
	if !srv.GroupSync() {
		t.Skip("the temporary folder's file system may lose a renamed file")
	}
	d := &slowDisk{Server: srv, began: make(chan struct{}, 16), ends: make(chan error)}
	log := jetstreamtest.Open(t, nc, &jetstream.Options{Durability: eventlog.DurabilityFsync, Server: d})
	return d, nc, log
}

// first returns the first value of records once there is one.
func first[T any](records iter.Seq2[T, error]) <-chan error {
	came := make(chan error, 1)
	go func() {
		for _, err := range records {
			came <- err
			return
		}
		came <- errors.New("nothing came")
	}()
	return came
}

// TestNothingIsShownBeforeItIsDurable: until a record is on the disk no one receives it:
// the append is not acknowledged, and readers, followers, read models and NATS
// subscribers do not see it.
func TestNothingIsShownBeforeItIsDurable(t *testing.T) {
	t.Parallel()
	d, _, log := openSlowDisk(t, embed.Options{Listen: "127.0.0.1:0"})
	head, err := log.Append(t.Context(), "s", 0, []eventlog.Entry{logtest.Text("s", "a")})
	require.NoError(t, err)
	outside, err := nats.Connect(d.ClientURL())
	require.NoError(t, err)
	t.Cleanup(outside.Close)
	live, err := outside.SubscribeSync(layout.LiveSubject("s"))
	require.NoError(t, err)
	require.NoError(t, outside.Flush())
	follows := make(chan eventlog.Record, 2)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		for r, err := range log.Follow(ctx, "s", 0) {
			if err != nil {
				return
			}
			follows <- r
		}
	}()
	require.Equal(t, head, (<-follows).Sequence)

	d.slow.Store(true)
	appended := make(chan error, 1)
	go func() {
		_, err := log.Append(t.Context(), "s", head, []eventlog.Entry{logtest.Text("s", "b")})
		appended <- err
	}()
	<-d.began // the server has stored it
	read := first(log.Read(t.Context(), "s", head, 0))
	<-d.began
	fed := first(log.Feed(t.Context(), 0, head))
	<-d.began
	heads := make(chan error, 1)
	go func() {
		_, err := log.Head(t.Context(), "s")
		heads <- err
	}()
	<-d.began
	for name, came := range map[string]<-chan error{"append": appended, "read": read, "feed": fed, "head": heads} {
		select {
		case err := <-came:
			t.Errorf("%s: answered before the sync: %v", name, err)
		default:
		}
	}
	require.Empty(t, follows)
	require.NoError(t, outside.Flush())
	n, _, err := live.Pending()
	require.NoError(t, err)
	require.Zero(t, n)

	d.slow.Store(false)
	for range 4 {
		d.ends <- nil
	}
	for _, came := range []<-chan error{appended, read, fed, heads} {
		require.NoError(t, <-came)
	}
	r := <-follows
	require.Equal(t, head+1, r.Sequence)
	require.Equal(t, logtest.Text("s", "b").Payload, r.Payload)
	m, err := live.NextMsgWithContext(t.Context())
	require.NoError(t, err)
	require.Equal(t, r.Payload, m.Data)
	for name, want := range map[string]string{
		"Nats-Stream": "HELIX_LOG_0", "Nats-Subject": "helix.log.0.s", "Nats-Sequence": "2", "Nats-Last-Sequence": "1",
	} {
		require.Equal(t, want, m.Header.Get(name), name)
	}
	require.NotEmpty(t, m.Header.Get("Nats-Time-Stamp"))
}

// TestAnAppendWhoseSyncFailsIsNotCalledDurable: its outcome is unknown.
func TestAnAppendWhoseSyncFailsIsNotCalledDurable(t *testing.T) {
	t.Parallel()
	d, _, log := openSlowDisk(t, embed.Options{})
	d.slow.Store(true)
	go func() { d.ends <- syscall.EIO }()
	_, err := log.Append(t.Context(), "s", 0, []eventlog.Entry{logtest.Text("s", "a")})
	require.ErrorIs(t, err, eventlog.ErrOutcomeUnknown)
	require.ErrorIs(t, err, syscall.EIO)

	<-d.began // the append's
	<-d.began // the sync for the session's followers
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		<-d.began
		leave()
	}()
	_, err = log.Append(ctx, "other", 0, []eventlog.Entry{logtest.Text("other", "a")})
	require.ErrorIs(t, err, eventlog.ErrOutcomeUnknown)
	require.ErrorIs(t, err, context.Canceled)
	d.slow.Store(false)
	close(d.ends)
}

// TestAnAppenderThatLeavesHidesNothing: an append that was stored after its caller left
// reaches followers once it is on the disk.
func TestAnAppenderThatLeavesHidesNothing(t *testing.T) {
	t.Parallel()
	d, _, log := openSlowDisk(t, embed.Options{Listen: "127.0.0.1:0"})
	outside, err := nats.Connect(d.ClientURL())
	require.NoError(t, err)
	t.Cleanup(outside.Close)
	live, err := outside.SubscribeSync(layout.LiveSubject("s"))
	require.NoError(t, err)
	require.NoError(t, outside.Flush())
	d.slow.Store(true)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	appended := make(chan error, 1)
	go func() {
		_, err := log.Append(ctx, "s", 0, []eventlog.Entry{logtest.Text("s", "a")})
		appended <- err
	}()
	<-d.began
	leave()
	require.ErrorIs(t, <-appended, eventlog.ErrOutcomeUnknown)
	<-d.began // the log continues to wait
	n, _, err := live.Pending()
	require.NoError(t, err)
	require.Zero(t, n)
	d.slow.Store(false)
	d.ends <- nil
	m, err := live.NextMsgWithContext(t.Context())
	require.NoError(t, err)
	require.Equal(t, logtest.Text("s", "a").Payload, m.Data)
}

// TestOldRecordsNeedNoSync: records that existed when the log was opened are read without
// waiting for the disk.
func TestOldRecordsNeedNoSync(t *testing.T) {
	t.Parallel()
	srv, nc, log := openGroupSync(t)
	head, err := log.Append(t.Context(), "s", 0, manyTexts("a", 500))
	require.NoError(t, err)
	require.NoError(t, log.Close())
	d := &slowDisk{Server: srv, began: make(chan struct{}, 16), ends: make(chan error)}
	again := jetstreamtest.Open(t, nc, &jetstream.Options{Durability: eventlog.DurabilityFsync, Server: d})
	d.slow.Store(true) // a sync would not end
	require.Len(t, recordsOf(t, again, "s", 0, 0), 500)
	for r, err := range again.Feed(t.Context(), 0, 0) {
		require.NoError(t, err)
		if r.Sequence == head {
			break
		}
	}
	d.slow.Store(false)
}

// TestAPurgeKeepsTheLogsEnd: if all records of a log are sealed, a purge keeps the last
// one. Otherwise the server would remove all blocks, and after a power loss not know the
// log's end.
func TestAPurgeKeepsTheLogsEnd(t *testing.T) {
	t.Parallel()
	srv, nc, log := openGroupSync(t)
	head, err := log.Append(t.Context(), "s", 0, manyTexts("a", 20))
	require.NoError(t, err)
	require.NoError(t, log.Seal(t.Context(), "s"))
	_, err = log.Purge(t.Context(), now)
	require.NoError(t, err)
	first, last, messages, ok := srv.Replica("HELIX_LOG_0")
	require.True(t, ok)
	require.Equal(t, []uint64{head, head, 1}, []uint64{first, last, messages})
	_, err = log.Append(t.Context(), "s", head, manyTexts("b", 1))
	require.NoError(t, err)
	require.Len(t, recordsOf(t, log, "s", 0, 0), 21)
	_ = nc
}

// TestAPurgeAfterAnErasure: if the log's last session was erased, the server still finds
// other sessions' records, however often the log is purged.
func TestAPurgeAfterAnErasure(t *testing.T) {
	t.Parallel()
	_, nc, log := openGroupSync(t)
	purge := func() {
		_, err := log.Purge(t.Context(), now)
		require.NoError(t, err)
	}
	head, err := log.Append(t.Context(), "stays", 0, manyTexts("a", 2))
	require.NoError(t, err)
	purge()
	head, err = log.Append(t.Context(), "stays", head, manyTexts("b", 2))
	require.NoError(t, err)
	_, err = log.Append(t.Context(), "goes", 0, manyTexts("c", 2))
	require.NoError(t, err)
	_, err = log.Erase(t.Context(), "goes")
	require.NoError(t, err)
	js, err := natsjs.New(nc)
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), "HELIX_LOG_0")
	require.NoError(t, err)
	for i := range 3 {
		purge()
		m, err := stream.GetLastMsgForSubject(t.Context(), "helix.log.0.stays")
		require.NoError(t, err)
		require.Equal(t, head, m.Sequence)
		head, err = log.Append(t.Context(), "stays", head, manyTexts("d", 1))
		require.NoError(t, err)
		require.Len(t, recordsOf(t, log, "stays", 0, 0), 5+i)
	}
}

// TestTwoLogsWithoutRepublishing: a follower of one log of the process receives the
// appends of another one.
func TestTwoLogsWithoutRepublishing(t *testing.T) {
	t.Parallel()
	srv, nc, log := openGroupSync(t)
	other := jetstreamtest.Open(t, nc, &jetstream.Options{Durability: eventlog.DurabilityFsync, Server: srv})
	head, err := log.Append(t.Context(), "s", 0, []eventlog.Entry{logtest.Text("s", "a")})
	require.NoError(t, err)
	for r, err := range other.Follow(t.Context(), "s", 0) {
		require.NoError(t, err)
		require.Equal(t, head, r.Sequence)
		if r.Sequence == 20 {
			break
		}
		head, err = log.Append(t.Context(), "s", head, []eventlog.Entry{logtest.Text("s", "b")})
		require.NoError(t, err)
	}
}

// TestWhoPublishesLiveRecords: a folder may be used with and without GroupSync in turn.
// With it the log publishes live records, otherwise the server does.
func TestWhoPublishesLiveRecords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	head := uint64(0)
	for i, group := range []bool{true, false, true, false} {
		srv, nc := embedtest.Start(t, embed.Options{DataDir: dir, GroupSync: group, Listen: "127.0.0.1:0"})
		if group && !srv.GroupSync() {
			t.Skip("the temporary folder's file system may lose a renamed file")
		}
		read, err := jetstream.Open(t.Context(), nc, &jetstream.Options{ReadOnly: true})
		if i > 0 { // a reader accepts the settings of the one before
			require.NoError(t, err)
			require.NoError(t, read.Close())
		}
		log := jetstreamtest.Open(t, nc, &jetstream.Options{Durability: eventlog.DurabilityFsync, Server: srv})
		js, err := natsjs.New(nc)
		require.NoError(t, err)
		s, err := js.Stream(t.Context(), "HELIX_LOG_0")
		require.NoError(t, err)
		require.Equal(t, group, s.CachedInfo().Config.RePublish == nil)
		outside, err := nats.Connect(srv.ClientURL())
		require.NoError(t, err)
		t.Cleanup(outside.Close)
		live, err := outside.SubscribeSync("helix.live.>")
		require.NoError(t, err)
		require.NoError(t, outside.Flush())
		head, err = log.Append(t.Context(), "s", head, []eventlog.Entry{logtest.Text("s", "a")})
		require.NoError(t, err)
		m, err := live.NextMsgWithContext(t.Context())
		require.NoError(t, err)
		require.Equal(t, layout.LiveSubject("s"), m.Subject)
		var found []integrity.Finding
		require.NoError(t, log.VerifyStreams(t.Context(), func(f integrity.Finding) { found = append(found, f) }))
		require.Empty(t, found)
		log.Close()
		nc.Close()
		outside.Close()
		srv.Stop()
	}
}

// TestAppendsOutliveTheirPlaceInMemory: the system may remove what a user has in memory, as systemd does when
// the user logs out. Appends of several records continue.
func TestAppendsOutliveTheirPlaceInMemory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	srv, nc := embedtest.Start(t, embed.Options{DataDir: dir, GroupSync: true})
	log := jetstreamtest.Open(t, nc, &jetstream.Options{Durability: eventlog.DurabilityFsync, Server: srv})
	head := uint64(0)
	for range 3 {
		var err error
		head, err = log.Append(t.Context(), "s", head, []eventlog.Entry{logtest.Text("s", "a"), logtest.Text("s", "b")})
		require.NoError(t, err)
		place, err := os.ReadFile(filepath.Join(dir, "helixd.staging"))
		if errors.Is(err, fs.ErrNotExist) {
			t.Skip("this machine has no file system in memory")
		}
		require.NoError(t, err)
		require.DirExists(t, string(place))
		require.NoError(t, os.RemoveAll(string(place)))
	}
}
