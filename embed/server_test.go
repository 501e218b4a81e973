package embed_test

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/integration/testkit"
)

func TestMain(m *testing.M) {
	testkit.AtOnce(6)
	goleak.VerifyTestMain(testkit.InMemory(m))
}

func connect(t *testing.T, srv *embed.Server) (*nats.Conn, natsjs.JetStream) {
	t.Helper()
	nc, err := srv.Connect()
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := natsjs.New(nc, natsjs.WithDefaultTimeout(patience))
	require.NoError(t, err)
	return nc, js
}

func TestStopIsIdempotentAndLeavesNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	srv := embedtest.Server(t, embed.Options{Listen: "127.0.0.1:0"})
	nc, err := srv.Connect()
	require.NoError(t, err)
	nc.Close()
	srv.Stop()
	srv.Stop()
	goleak.VerifyNone(t, before)
	_, err = srv.Connect()
	require.Error(t, err)
}

func TestRestartKeepsMessages(t *testing.T) {
	t.Parallel()
	for _, sync := range []time.Duration{0, time.Minute} {
		t.Run(sync.String(), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "not", "yet", "there")
			srv := embedtest.Server(t, embed.Options{DataDir: dir, SyncInterval: sync})
			_, js := connect(t, srv)
			_, err := js.CreateStream(t.Context(), natsjs.StreamConfig{Name: "S", Subjects: []string{"s"}})
			require.NoError(t, err)
			_, err = js.Publish(t.Context(), "s", []byte("kept"))
			require.NoError(t, err)
			srv.Stop()

			_, js = connect(t, embedtest.Server(t, embed.Options{DataDir: dir, SyncInterval: sync}))
			s, err := js.Stream(t.Context(), "S")
			require.NoError(t, err)
			m, err := s.GetMsg(t.Context(), 1)
			require.NoError(t, err)
			require.Equal(t, "kept", string(m.Data))
		})
	}
}

func TestSyncInterval(t *testing.T) {
	t.Parallel()
	require.Zero(t, embedtest.Server(t, embed.Options{}).SyncInterval(), "every append is synced unless asked otherwise")
	require.Equal(t, time.Second, embedtest.Server(t, embed.Options{SyncInterval: time.Second}).SyncInterval())
}

func TestLargestPayload(t *testing.T) {
	t.Parallel()
	nc, js := connect(t, embedtest.Server(t, embed.Options{}))
	require.EqualValues(t, embed.MaxPayload, nc.MaxPayload())
	_, err := js.CreateStream(t.Context(), natsjs.StreamConfig{Name: "S", Subjects: []string{"s"}, AllowDirect: true})
	require.NoError(t, err)
	want := bytes.Repeat([]byte("x"), embed.MaxPayload)
	_, err = js.Publish(t.Context(), "s", want)
	require.NoError(t, err)
	s, err := js.Stream(t.Context(), "S")
	require.NoError(t, err)
	m, err := s.GetMsg(t.Context(), 1)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, m.Data))
	require.ErrorIs(t, nc.Publish("s", append(want, 'x')), nats.ErrMaxPayload)
}

func TestNoPortUnlessAsked(t *testing.T) { // alone: others open ports
	before := listening(t)
	require.Empty(t, embedtest.Server(t, embed.Options{}).ClientURL())
	if _, err := os.Stat("/proc/self/net/tcp"); err != nil {
		t.Skip("sockets are counted on Linux only")
	}
	require.Equal(t, before, listening(t))
	embedtest.Server(t, embed.Options{Listen: "127.0.0.1:0"})
	require.Equal(t, before+1, listening(t))
}

// listening counts the TCP sockets on which this process listens.
func listening(t *testing.T) (n int) {
	t.Helper()
	own := map[string]bool{}
	fds, err := filepath.Glob("/proc/self/fd/*")
	require.NoError(t, err)
	for _, fd := range fds {
		if target, err := os.Readlink(fd); err == nil {
			own[target] = true
		}
	}
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		sockets, err := os.ReadFile(table)
		if os.IsNotExist(err) {
			continue
		}
		require.NoError(t, err)
		for line := range strings.Lines(string(sockets)) {
			// The fourth column is the state, 0A for listening; the tenth the inode.
			if f := strings.Fields(line); len(f) > 9 && f[3] == "0A" && own["socket:["+f[9]+"]"] {
				n++
			}
		}
	}
	return n
}

func TestListen(t *testing.T) {
	srv := embedtest.Server(t, embed.Options{Listen: "127.0.0.1:0"})
	nc, err := nats.Connect(srv.ClientURL(), nats.Timeout(patience))
	require.NoError(t, err)
	nc.Close()
	srv.Stop()
	_, err = nats.Connect(srv.ClientURL())
	require.Error(t, err, "no one listens after Stop")
}

func TestStartErrors(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	running := t.TempDir()
	embedtest.Server(t, embed.Options{DataDir: running})

	for name, tc := range map[string]struct {
		o    embed.Options
		want string
	}{
		"no data dir":           {embed.Options{}, "DataDir is required"},
		"a file as data dir":    {embed.Options{DataDir: file}, "not a directory"},
		"a file above":          {embed.Options{DataDir: filepath.Join(file, "x")}, "not a directory"},
		"a folder in use":       {embed.Options{DataDir: running}, running + " is in use by another server"},
		"an occupied port":      {embed.Options{DataDir: t.TempDir(), Listen: taken.Addr().String()}, "address already in use"},
		"no port":               {embed.Options{DataDir: t.TempDir(), Listen: "localhost"}, "missing port"},
		"a bad port":            {embed.Options{DataDir: t.TempDir(), Listen: "localhost:http?"}, "bad port"},
		"a port out of range":   {embed.Options{DataDir: t.TempDir(), Listen: "localhost:65536"}, "bad port"},
		"a user alone":          {embed.Options{DataDir: t.TempDir(), User: "u"}, "go together"},
		"a password alone":      {embed.Options{DataDir: t.TempDir(), Password: "p"}, "go together"},
		"the server's own user": {embed.Options{DataDir: t.TempDir(), User: "helixd inside", Password: "p"}, "is taken"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := embed.Start(t.Context(), tc.o)
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestFailedStartLeavesTheFolderFree(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	dir := t.TempDir()
	_, err = embed.Start(t.Context(), embed.Options{DataDir: dir, Listen: taken.Addr().String()})
	require.Error(t, err)
	embedtest.Server(t, embed.Options{DataDir: dir})
}

func TestCanceledStart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := embed.Start(ctx, embed.Options{DataDir: t.TempDir()})
	require.ErrorIs(t, err, context.Canceled)
}
