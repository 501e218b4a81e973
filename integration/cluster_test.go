package integration_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/jetstreamtest"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/integration/testkit"
)

// clusterSize is how many servers newCluster runs.
const clusterSize = 3

// cluster is an outside NATS deployment, of servers inside this process.
type cluster struct {
	t       *testing.T
	servers []*server.Server
}

// newCluster runs a deployment and waits until it has a leader.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	testkit.Cluster(t)
	var addresses []*net.TCPAddr
	var routes []*url.URL
	for range clusterSize {
		address, err := net.ResolveTCPAddr("tcp", freeAddress(t))
		require.NoError(t, err)
		addresses = append(addresses, address)
		routes = append(routes, &url.URL{Scheme: "nats", Host: address.String()})
	}
	c := &cluster{t: t}
	for i, a := range addresses {
		c.servers = append(c.servers, newServer(t, fmt.Sprint("n", i), func(o *server.Options) {
			o.Cluster, o.Routes = server.ClusterOpts{Name: "outside", Host: "127.0.0.1", Port: a.Port}, routes
		}))
	}
	waitForLeader(t, c.servers)
	return c
}

// waitForLeader waits until servers are a cluster with a leader.
func waitForLeader(t *testing.T, servers []*server.Server) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, s := range servers {
			if s.JetStreamIsLeader() {
				return len(s.JetStreamClusterPeers()) == clusterSize
			}
		}
		return false
	}, clusterPatience, 5*time.Millisecond, "the cluster has no leader")
}

// leader is the server that leads a stream.
func (c *cluster) leader(stream string) (leader *server.Server) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		i := slices.IndexFunc(c.servers, func(s *server.Server) bool {
			return s.Running() && s.JetStreamIsStreamLeader(server.DEFAULT_GLOBAL_ACCOUNT, stream)
		})
		if i >= 0 {
			leader = c.servers[i]
		}
		return i >= 0
	}, clusterPatience, 5*time.Millisecond, "%s has no leader", stream)
	return leader
}

// loseLeader stops the server that leads a stream. Another one leads at once.
func (c *cluster) loseLeader(stream string) {
	c.t.Helper()
	leader := c.leader(stream)
	leader.Shutdown()
	leader.WaitForShutdown()
}

// newServer runs a nats-server as somebody else would, not helixd.
func newServer(t *testing.T, name string, change func(*server.Options)) *server.Server {
	t.Helper()
	o := &server.Options{
		ServerName: name, Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true,
		JetStream: true, StoreDir: t.TempDir(), JetStreamMaxStore: 1 << 30, JetStreamMaxMemory: 64 << 20,
	}
	if change != nil {
		change(o)
	}
	s, err := server.NewServer(o)
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	require.True(t, s.ReadyForConnections(time.Minute))
	return s
}

// url names all servers of the cluster.
func (c *cluster) url() (all string) {
	for _, s := range c.servers {
		all += "," + s.ClientURL()
	}
	return all[1:]
}

// without reports whether no server has a folder of such a stream ("*": of any).
// The deletion of a stream is acknowledged before all have removed it, and a
// server that still does so can't create one of that name.
func (c *cluster) without(stream string) bool {
	for _, s := range c.servers {
		folders, err := filepath.Glob(filepath.Join(s.StoreDir(), "*", "streams", stream))
		require.NoError(c.t, err)
		if len(folders) > 0 {
			return false
		}
	}
	return true
}

func connect(t *testing.T, url string) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(url, nats.Timeout(time.Minute), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

// streams is JetStream as a test uses it, which has patience.
func streams(t *testing.T, nc *nats.Conn) natsjs.JetStream {
	t.Helper()
	js, err := natsjs.New(nc, natsjs.WithDefaultTimeout(clusterPatience))
	require.NoError(t, err)
	return js
}

// What the daemon says of an outside deployment at its start and in /readyz.
func TestDaemonOnAnOutsideDeployment(t *testing.T) {
	testkit.Long(t)
	t.Parallel() // most of it is waiting
	const (
		warning = `level=WARN msg="durability is unknown: acknowledged appends survive a killed client; nothing more is known"`
		ready   = `msg="helixd is ready"`
	)
	w := newWorld(t)
	for _, tc := range []struct {
		name, url, replicas, durability, guarantee string
		warns                                      bool
	}{
		{"one server", newServer(t, "outside", nil).ClientURL(), "1", "unknown", "acknowledged appends survive a killed client; nothing more is known", true},
		{"three servers", newCluster(t).url(), "3", "replicated×3", "acknowledged appends survive the loss of fewer than half of 3 servers", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newDaemon(t, "serve", "--config", w.config, "--allow-unauthenticated", "--nats-url", tc.url)
			d.env = []string{"HELIX_NATS_REPLICAS=" + tc.replicas, "HELIX_NATS_PARTITIONS=1"}
			d.start()
			status, answer := d.get("/readyz")
			require.Equal(t, http.StatusOK, status)
			require.Equal(t, tc.durability, answer["durability"])
			require.Equal(t, tc.guarantee, answer["guarantee"])
			require.Equal(t, tc.warns, strings.Contains(d.logs.String(), warning), "%s", d.logs)
			require.Eventually(t, func() bool { return strings.Contains(d.logs.String(), ready) }, time.Minute, time.Millisecond)
			require.Contains(t, d.logs.String(), "durability="+tc.durability)
			w.run(t, d, "session", nil)
			_, summary := d.get("/sessions/session")
			require.Equal(t, tc.durability, summary["durability"])
			d.stop()
		})
	}
	for want, args := range map[string][]string{
		"durability: is for the embedded server: with nats.url": {"--nats-url", "nats://127.0.0.1:1", "--durability", "fsync"},
		"nats.replicas: needs nats.url":                         {"--data-dir", t.TempDir()},
	} {
		args = append([]string{"serve", "--config", w.config, "--allow-unauthenticated", "--listen", "127.0.0.1:0"}, args...)
		refused := exec.CommandContext(t.Context(), program(t), args...)
		refused.Env = append(os.Environ(), "HELIX_NATS_REPLICAS=3")
		out, err := refused.CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(out), want)
	}
}

// On an outside deployment durability is what the streams say, not what we
// asked for.
func TestDurabilityOfACluster(t *testing.T) {
	t.Parallel() // most of it is waiting
	nc := connect(t, newCluster(t).url())
	js := streams(t, nc)
	log := jetstreamtest.Open(t, nc, &jetstream.Options{Replicas: 3, Partitions: 1})
	require.EqualValues(t, "replicated×3", log.Info().Durability)
	for _, o := range []*jetstream.Options{{ReadOnly: true}, {Existing: true}} {
		require.EqualValues(t, "replicated×3", jetstreamtest.Open(t, nc, o).Info().Durability)
	}
	_, err := jetstream.Open(t.Context(), nc, nil)
	require.ErrorContains(t, err, "jetstream: stream HELIX_LOG_0: num_replicas is 3, must be 1")

	// Somebody has the servers compress what they keep, which they can't do
	// safely; then takes replicas away behind our back.
	segments, err := js.Stream(t.Context(), "HELIX_SEG_0")
	require.NoError(t, err)
	compressed := segments.CachedInfo().Config
	require.Equal(t, natsjs.NoCompression, compressed.Compression)
	compressed.Compression = natsjs.S2Compression
	_, err = js.UpdateStream(t.Context(), compressed)
	require.NoError(t, err)
	_, err = jetstream.Open(t.Context(), nc, &jetstream.Options{Replicas: 3, Partitions: 1})
	require.ErrorContains(t, err, "jetstream: stream HELIX_SEG_0: compression is S2, must be None")
	compressed.Compression = natsjs.NoCompression
	_, err = js.UpdateStream(t.Context(), compressed)
	require.NoError(t, err)

	stream, err := js.Stream(t.Context(), "HELIX_LOG_0")
	require.NoError(t, err)
	config := stream.CachedInfo().Config
	config.Replicas = 1
	_, err = js.UpdateStream(t.Context(), config)
	require.NoError(t, err)
	_, err = jetstream.Open(t.Context(), nc, &jetstream.Options{Replicas: 3, Partitions: 1})
	require.ErrorContains(t, err, "jetstream: stream HELIX_LOG_0: num_replicas is 1, must be 3")
	require.Equal(t, eventlog.DurabilityUnknown, jetstreamtest.Open(t, nc, &jetstream.Options{ReadOnly: true}).Info().Durability,
		"the weakest stream counts")
}

// Replicas in memory would look durable and not be.
func TestMemoryOnAClusterIsRefused(t *testing.T) {
	t.Parallel() // most of it is waiting
	c := newCluster(t)
	nc := connect(t, c.url())
	js := streams(t, nc)
	jetstreamtest.Open(t, nc, &jetstream.Options{Replicas: 3, Partitions: 1})
	stream, err := js.Stream(t.Context(), "HELIX_LOG_0")
	require.NoError(t, err)
	config := stream.CachedInfo().Config
	require.NoError(t, js.DeleteStream(t.Context(), config.Name))
	require.Eventually(t, func() bool { return c.without(config.Name) }, clusterPatience, time.Millisecond)
	config.Storage = natsjs.MemoryStorage
	_, err = js.CreateStream(t.Context(), config)
	require.NoError(t, err)
	_, err = jetstream.Open(t.Context(), nc, &jetstream.Options{Replicas: 3, Partitions: 1})
	require.ErrorContains(t, err, "jetstream: stream HELIX_LOG_0: storage is Memory, must be File")
	_, err = jetstream.Open(t.Context(), nc, &jetstream.Options{Existing: true})
	require.ErrorContains(t, err, "a log in memory has one replica")
	require.Equal(t, eventlog.DurabilityMemory, jetstreamtest.Open(t, nc, &jetstream.Options{ReadOnly: true}).Info().Durability)
}

// What was acknowledged survives the loss of a server, and appends continue.
func TestAReplicatedLogSurvivesAServer(t *testing.T) {
	t.Parallel() // most of it is waiting
	c := newCluster(t)
	nc := connect(t, c.url())
	log := jetstreamtest.Open(t, nc, &jetstream.Options{Replicas: 3, Partitions: 1})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	last := uint64(0)
	for i := range 3 * clusterSize {
		if i == 5 {
			c.loseLeader("HELIX_LOG_0")
		}
		var err error
		last, err = eventlog.AppendOnce(ctx, log, "s", fmt.Sprint("w", i), last, []eventlog.Entry{logtest.Text("s", fmt.Sprint(i))})
		require.NoError(t, err)
	}
	var got []string
	for c, err := range eventlog.Chunks(log.Read(ctx, "s", 0, 0)) {
		require.NoError(t, err)
		got = append(got, c.Chunk.(*eventlog.TextDelta).Delta)
	}
	require.Equal(t, []string{"0", "1", "2", "3", "4", "5", "6", "7", "8"}, got)
}

func TestContractOfAReplicatedLog(t *testing.T) {
	testkit.Full(t)
	t.Parallel() // most of it is waiting
	idle := make(chan *cluster, 3)
	for range cap(idle) {
		idle <- newCluster(t)
	}
	logtest.Run(t, func(t *testing.T) eventlog.Log {
		c := <-idle
		t.Cleanup(func() { idle <- c })
		nc := connect(t, c.url())
		js := streams(t, nc)
		// Nobody answers a request that reaches the cluster between two leaders: Settle asks again.
		require.NoError(t, jetstream.Settle(t.Context(), nc, func(ctx context.Context) error {
			names := js.StreamNames(ctx)
			for name := range names.Name() { // of the log before
				if err := js.DeleteStream(ctx, name); err != nil && !errors.Is(err, natsjs.ErrStreamNotFound) {
					return err
				}
			}
			return names.Err()
		}))
		require.Eventually(t, func() bool { return c.without("*") }, clusterPatience, time.Millisecond, "deleted streams are still on some server's disk")
		return jetstreamtest.Open(t, nc, &jetstream.Options{Replicas: 3, Partitions: 1})
	})
}

// A leader that was cut off refuses a comparison after the others have stored more. That
// is no conflict: no caller gets the answer that a session has gone back.
func TestOnlyALeaderTellsOfAConflict(t *testing.T) {
	t.Parallel() // most of it is waiting
	c := newCluster(t)
	log := jetstreamtest.Open(t, connect(t, c.url()), &jetstream.Options{Replicas: 3, Partitions: 1})
	last, err := eventlog.AppendOnce(t.Context(), log, "s", "w", 0, []eventlog.Entry{logtest.Text("s", "a")})
	require.NoError(t, err)
	beyond := func(ctx context.Context, log eventlog.Log) error {
		_, err := log.Append(ctx, "s", last+1000, []eventlog.Entry{logtest.Text("s", "b")})
		return err
	}
	var refused *eventlog.ConflictError
	require.Eventually(t, func() bool {
		return errors.As(beyond(t.Context(), log), &refused)
	}, clusterPatience, time.Millisecond, "a number that no caller received")
	require.Equal(t, last, refused.Head)

	leader := c.leader("HELIX_LOG_0")
	log = jetstreamtest.Open(t, connect(t, leader.ClientURL()), &jetstream.Options{Existing: true})
	var gone sync.WaitGroup // without waiting: it leads for some seconds only
	defer gone.Wait()
	for _, s := range c.servers {
		if s != leader {
			gone.Go(s.Shutdown)
		}
	}
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		err := beyond(ctx, log)
		return errors.Is(err, eventlog.ErrOutcomeUnknown) && strings.Contains(err.Error(), "may lead no more")
	}, time.Minute, 10*time.Millisecond)
}
