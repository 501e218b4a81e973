package embed_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/integration/deployment"
	"github.com/helixd/helixd/integration/testkit"
)

const (
	// patience is how long a cluster on a busy machine may take.
	patience = 2 * time.Minute
	// try is how long one request waits, which is dropped without a leader.
	try = 5 * time.Second
)

// clusterOf returns the options of n servers that list one another.
func clusterOf(t *testing.T, n int) []embed.Options {
	t.Helper()
	addresses, err := deployment.FreeAddresses(n)
	require.NoError(t, err)
	nodes := make([]embed.Options, n)
	for i := range nodes {
		c := &embed.Cluster{Listen: addresses[i], User: "route", Password: "p\"{$x} #"}
		for j, a := range addresses {
			if i != j {
				c.Routes = append(c.Routes, "nats://"+a)
			}
		}
		nodes[i] = embed.Options{DataDir: t.TempDir(), Name: fmt.Sprint("n", i), Cluster: c}
	}
	return nodes
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := deployment.FreeAddress()
	require.NoError(t, err)
	return address
}

// startAll starts servers that wait for each other.
func startAll(t *testing.T, nodes ...embed.Options) []*embed.Server {
	t.Helper()
	testkit.Cluster(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	servers, errs := make([]*embed.Server, len(nodes)), make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, o := range nodes {
		wg.Go(func() { servers[i], errs[i] = embed.Start(ctx, o) })
	}
	wg.Wait()
	for i, srv := range servers {
		if srv != nil {
			t.Cleanup(srv.Stop)
		}
		require.NoError(t, errs[i], nodes[i].Name)
	}
	return servers
}

// replicated makes stream S on three servers.
func replicated(t *testing.T, srv *embed.Server) {
	t.Helper()
	_, js := connect(t, srv)
	require.Eventually(t, func() bool { // until the leader has heard of all
		ctx, cancel := context.WithTimeout(t.Context(), try)
		defer cancel()
		_, err := js.CreateStream(ctx, natsjs.StreamConfig{Name: "S", Subjects: []string{"s"}, Replicas: 3, AllowDirect: true})
		return err == nil
	}, patience, 50*time.Millisecond)
}

// publish stores a message as soon as the stream has a leader.
func publish(t *testing.T, srv *embed.Server, text string) {
	t.Helper()
	_, js := connect(t, srv)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		ctx, cancel := context.WithTimeout(t.Context(), try)
		defer cancel()
		_, err := js.Publish(ctx, "s", []byte(text), natsjs.WithMsgID(text))
		assert.NoError(c, err) // is reported if it is the last one
	}, patience, 50*time.Millisecond)
}

func requireMessages(t *testing.T, srv *embed.Server, want ...string) {
	t.Helper()
	_, js := connect(t, srv)
	var got []string
	require.Eventually(t, func() bool {
		got = nil
		ctx, cancel := context.WithTimeout(t.Context(), try)
		defer cancel()
		s, err := js.Stream(ctx, "S")
		if err != nil {
			return false
		}
		for seq := s.CachedInfo().State.FirstSeq; seq <= s.CachedInfo().State.LastSeq; seq++ {
			m, err := s.GetMsg(ctx, seq)
			if err != nil {
				return false
			}
			got = append(got, string(m.Data))
		}
		return slices.Equal(got, want)
	}, patience, 50*time.Millisecond, "got %v, want %v", got, want)
}

// requireWhole waits until all three servers have what is in the stream, as who
// restarts them one by one does.
func requireWhole(t *testing.T, srv *embed.Server) {
	t.Helper()
	_, js := connect(t, srv)
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), try)
		defer cancel()
		s, err := js.Stream(ctx, "S")
		if err != nil || s.CachedInfo().Cluster == nil {
			return false
		}
		c := s.CachedInfo().Cluster
		return c.Leader != "" && len(c.Replicas) == 2 && !slices.ContainsFunc(c.Replicas, func(r *natsjs.PeerInfo) bool {
			return r.Offline || !r.Current
		})
	}, patience, 50*time.Millisecond)
}

func TestClusterOutlivesAServer(t *testing.T) {
	t.Parallel()
	nodes := clusterOf(t, 3)
	servers := startAll(t, nodes...)
	replicated(t, servers[0])
	for i, srv := range servers {
		publish(t, srv, fmt.Sprint("from ", i))
	}
	servers[1].Stop()
	publish(t, servers[0], "without one")
	want := []string{"from 0", "from 1", "from 2", "without one"}
	requireMessages(t, servers[2], want...)

	servers[1] = startAll(t, nodes[1])[0]
	requireWhole(t, servers[2])
	servers[0].Stop() // now it needs the one that came back
	publish(t, servers[1], "without another")
	requireMessages(t, servers[2], append(want, "without another")...)
}

// TestRemoveServer: a server that runs stays, a name that the cluster does not have is no
// success, and a server that is gone is removed.
func TestRemoveServer(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	nodes := clusterOf(t, 3)
	for i := range nodes {
		nodes[i] = embed.WithRemoveAsk(nodes[i], 200*time.Millisecond)
	}
	servers := startAll(t, nodes...)
	replicated(t, servers[0])
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := servers[0].RemoveServer(ctx, "n2")
	require.EqualError(t, err, "embed: remove server: n2 runs: stop it first")
	_, err = servers[0].RemoveServer(ctx, "n0")
	require.ErrorContains(t, err, "this one is n0 itself")
	removed, err := servers[0].RemoveServer(ctx, "n9")
	require.NoError(t, err)
	require.False(t, removed)
	publish(t, servers[0], "all are there")
	requireWhole(t, servers[0])

	servers[2].Stop()
	removed, err = servers[0].RemoveServer(ctx, "n2")
	require.NoError(t, err)
	require.True(t, removed)
	removed, err = servers[1].RemoveServer(ctx, "n2")
	require.NoError(t, err)
	require.False(t, removed, "it was removed before")
}

// TestRemoveServerThatAnotherOneReaches: a server that does not answer this one may run, as
// long as another one has a route to it.
func TestRemoveServerThatAnotherOneReaches(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	nodes := clusterOf(t, 3)
	for i := range nodes {
		nodes[i] = embed.WithRemoveAsk(nodes[i], 200*time.Millisecond)
	}
	servers := startAll(t, nodes...)
	replicated(t, servers[0])
	publish(t, servers[0], "all are there")
	requireWhole(t, servers[0])
	servers[2].Stop()

	// Another server of its name, which takes no routes: it has one to n1 alone.
	n1 := *nodes[1].Cluster
	near, err := server.NewServer(&server.Options{
		ServerName: "n2", Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true,
		Cluster: server.ClusterOpts{
			Name: embed.DefaultCluster, Host: "127.0.0.1", Port: server.RANDOM_PORT, NoAdvertise: true, Username: "nobody", Password: "knows",
		},
		Routes: []*url.URL{{Scheme: "nats", Host: n1.Listen, User: url.UserPassword(n1.User, n1.Password)}},
	})
	require.NoError(t, err)
	near.Start()
	stop := sync.OnceFunc(func() { near.Shutdown(); near.WaitForShutdown() })
	defer stop()
	require.Eventually(t, func() bool { return near.NumRoutes() > 0 }, patience, time.Millisecond)

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // it takes one second if there is no route
	defer cancel()
	removed, err := servers[0].RemoveServer(ctx, "n2")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "n1 has a route to it")
	require.False(t, removed)

	stop()
	ctx, cancel = context.WithTimeout(t.Context(), patience)
	defer cancel()
	removed, err = servers[0].RemoveServer(ctx, "n2")
	require.NoError(t, err)
	require.True(t, removed)
}

func TestWholeClusterComesBack(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	nodes := clusterOf(t, 3)
	servers := startAll(t, nodes...)
	replicated(t, servers[0])
	publish(t, servers[0], "kept")
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}} {
		for _, srv := range servers {
			srv.Stop()
		}
		// One waits for the next as long as it takes.
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		began := make(chan *embed.Server, 1)
		go func() {
			srv, err := embed.Start(ctx, nodes[order[0]])
			if err != nil {
				t.Error(err)
			}
			began <- srv
		}()
		select {
		case <-began:
			require.Fail(t, "one of three is no cluster")
		case <-time.After(time.Second):
		}
		rest := startAll(t, nodes[order[1]], nodes[order[2]])
		first := <-began
		cancel()
		require.NotNil(t, first)
		t.Cleanup(first.Stop)
		servers[order[0]], servers[order[1]], servers[order[2]] = first, rest[0], rest[1]
		for _, srv := range servers {
			requireMessages(t, srv, "kept")
		}
	}
}

func TestAServerAloneSaysWhatItWaitsFor(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	var logs testkit.Log
	o := clusterOf(t, 3)[0]
	o.Logger = slog.New(slog.NewTextHandler(&logs, nil))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	go func() {
		for !strings.Contains(logs.String(), "waiting for most servers") && ctx.Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		cancel()
	}()
	_, err := embed.Start(ctx, o)
	require.ErrorIs(t, err, context.Canceled)
	require.Contains(t, logs.String(), `msg="waiting for most servers of the NATS cluster" server=n0 connected=[] routes="[`+o.Cluster.Routes[0])
}

func TestRoutesNeedThePassword(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	nodes := clusterOf(t, 3)
	startAll(t, nodes[:2]...)
	for name, change := range map[string]func(*embed.Cluster){
		"wrong": func(c *embed.Cluster) { c.Password = "wrong" },
		"none":  func(c *embed.Cluster) { c.User, c.Password = "", "" },
	} {
		stranger := nodes[2]
		c := *stranger.Cluster
		c.Listen = freeAddress(t) // where nobody calls with the password
		change(&c)
		stranger.Cluster, stranger.DataDir = &c, t.TempDir()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		_, err := embed.Start(ctx, stranger)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded, name)
	}
	startAll(t, nodes[2]) // it is the password alone
}

func TestRoutesWithTLS(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	good, foreign := certificates(t), certificates(t)
	nodes := clusterOf(t, 3)
	for i := range nodes {
		nodes[i].Cluster.User, nodes[i].Cluster.Password = "", ""
		nodes[i].Cluster.TLS = good
	}
	servers := startAll(t, nodes[:2]...)
	for name, set := range map[string]embed.TLS{
		"no TLS": {}, "another CA's certificate": {CA: good.CA, Cert: foreign.Cert, Key: foreign.Key},
	} {
		stranger := nodes[2]
		c := *stranger.Cluster
		c.TLS = set
		stranger.Cluster, stranger.DataDir = &c, t.TempDir()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		_, err := embed.Start(ctx, stranger)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded, name)
	}
	startAll(t, nodes[2])
	replicated(t, servers[0])
	publish(t, servers[1], "x")
}

// A folder's streams must not meet a cluster that does not know them.
func TestAFolderStaysWithItsServer(t *testing.T) {
	t.Parallel()
	nodes := clusterOf(t, 3)
	for _, srv := range startAll(t, nodes...) {
		srv.Stop()
	}
	_, err := embed.Start(t.Context(), embed.Options{DataDir: nodes[0].DataDir})
	require.ErrorContains(t, err, `belongs to server "n0" of a cluster`)
	other := nodes[0]
	other.Name = "n9"
	_, err = embed.Start(t.Context(), other)
	require.ErrorContains(t, err, `belongs to server "n0", not "n9"`)

	alone := embedtest.Server(t, embed.Options{})
	_, js := connect(t, alone)
	_, err = js.CreateStream(t.Context(), natsjs.StreamConfig{Name: "S", Subjects: []string{"s"}})
	require.NoError(t, err)
	alone.Stop()
	joins := nodes[0]
	joins.DataDir = alone.DataDir()
	_, err = embed.Start(t.Context(), joins)
	require.ErrorContains(t, err, "holds the streams of a single server, which a cluster would delete")
}

// Nobody gave it, so it comes of the host and the address, and is kept.
func TestNameOfAServer(t *testing.T) {
	t.Parallel()
	nodes := clusterOf(t, 3)
	for i := range nodes {
		nodes[i].Name = ""
	}
	servers := startAll(t, nodes...)
	host, err := os.Hostname()
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(nodes[0].Cluster.Listen)
	require.NoError(t, err)
	require.Equal(t, host+"-127.0.0.1-"+port, servers[0].Name())

	servers[0].Stop()
	nodes[0].Cluster.Listen = freeAddress(t)
	require.Equal(t, servers[0].Name(), startAll(t, nodes[0])[0].Name(), "it has moved")
}

// Clients of one server hear what is stored through another, and no more
// than they may on one.
func TestOutsideClientsOfACluster(t *testing.T) {
	t.Parallel()
	nodes := clusterOf(t, 3)
	nodes[0].Listen = "127.0.0.1:0"
	servers := startAll(t, nodes...)
	require.Empty(t, servers[1].ClientURL())
	out := outside(t, servers[0])
	sub, err := out.SubscribeSync("helix.live.>")
	require.NoError(t, err)
	require.NoError(t, out.Flush())
	nc, _ := connect(t, servers[1])
	require.Eventually(t, func() bool { // interest travels
		if nc.Publish("helix.live.s", []byte("x")) != nil {
			return false
		}
		m, err := sub.NextMsg(50 * time.Millisecond)
		return err == nil && m.Subject == "helix.live.s"
	}, patience, time.Millisecond)
	require.NoError(t, out.PublishRequest("$JS.API.STREAM.CREATE.X", out.NewInbox(), []byte("{}")))
	out.requireRefused(t, "a stream")
}

// A server of a cluster has a port for clients in any case; nobody may use it.
func TestNoClientsUnlessAsked(t *testing.T) {
	t.Parallel()
	nodes := clusterOf(t, 3)
	nodes[1].User, nodes[1].Password = "ops", "secret"
	servers := startAll(t, nodes...)
	for _, srv := range servers[:2] {
		port := srv.HiddenPort()
		for _, o := range [][]nats.Option{nil, {nats.UserInfo("helixd outside", "")}, {nats.UserInfo("helixd inside", "")}, {nats.UserInfo("x", "y")}} {
			requireNotLetIn(t, fmt.Sprintf("nats://127.0.0.1:%d", port), srv.Name(), o...)
		}
	}
}

func TestClusterErrors(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	routes := []string{"nats://127.0.0.1:1"}
	for want, c := range map[string]embed.Cluster{
		"cluster address: missing port":  {Routes: routes},
		"need a fixed port":              {Listen: "127.0.0.1:0", Routes: routes},
		"no routes":                      {Listen: "127.0.0.1:1"},
		"a route must be nats://host:po": {Listen: "127.0.0.1:1", Routes: []string{"http://u:secret@h:1"}},
		"User and Password go together":  {Listen: "127.0.0.1:1", Routes: routes, User: "u"},
		"CA, Cert and Key go together":   {Listen: "127.0.0.1:1", Routes: routes, TLS: embed.TLS{CA: "x"}},
		"TLS: error parsing X509":        {Listen: "127.0.0.1:1", Routes: routes, TLS: embed.TLS{CA: "x", Cert: "y", Key: "z"}},
		"address already in use":         {Listen: taken.Addr().String(), Routes: routes},
	} {
		_, err := embed.Start(t.Context(), embed.Options{DataDir: t.TempDir(), Cluster: &c})
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "secret")
	}
}
