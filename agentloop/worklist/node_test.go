package worklist_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model/modeltest"
	"github.com/helixd/helixd/agentloop/worklist"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/jetstreamtest"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/snapshot"
)

func TestMain(m *testing.M) {
	testkit.AtOnce(6)
	goleak.VerifyTestMain(testkit.InMemory(m))
}

// within is how long a test waits for what comes at once on an idle machine.
const within = 2 * time.Minute

type modelFunc = modeltest.Func

// site is a server with nodes on it.
type site struct {
	t   *testing.T
	srv *embed.Server
	log eventlog.Log     // to look at it
	js  natsjs.JetStream // to look at the list

	neverScan bool // its nodes read the list for what others announce only
}

func newSite(t *testing.T) *site {
	t.Helper()
	srv := embedtest.Server(t, embed.Options{SyncInterval: time.Minute})
	s := &site{t: t, srv: srv}
	nc := s.connect()
	s.log = s.open(nc)
	var err error
	s.js, err = natsjs.New(nc, natsjs.WithDefaultTimeout(within))
	require.NoError(t, err)
	return s
}

func (s *site) connect() *nats.Conn {
	s.t.Helper()
	nc, err := s.srv.Connect(nats.MaxReconnects(0))
	require.NoError(s.t, err)
	s.t.Cleanup(nc.Close)
	return nc
}

func (s *site) open(nc *nats.Conn) eventlog.Log {
	s.t.Helper()
	return jetstreamtest.Open(s.t, nc, &jetstream.Options{Durability: "interval=1m0s"})
}

// node is what a process would be.
type node struct {
	t     *testing.T
	name  string
	loop  *engine.Loop
	list  *worklist.Worklist
	log   eventlog.Log
	conns []*nats.Conn
	reg   *prometheus.Registry // of what it measures
	once  sync.Once
}

// node starts one that hosts the agents.
func (s *site) node(name string, agents ...agentloop.Agent) *node {
	s.t.Helper()
	n := &node{t: s.t, name: name, conns: []*nats.Conn{s.connect(), s.connect()}, reg: prometheus.NewPedanticRegistry()}
	n.log = s.open(n.conns[0])
	var err error
	o := worklist.Options{Node: name, Patience: time.Second, Metrics: worklist.NewMetrics(n.reg)}
	if s.neverScan {
		o.NeverScan()
	}
	n.list, err = worklist.Open(s.t.Context(), n.conns[1], o)
	require.NoError(s.t, err)
	n.loop, err = engine.New(n.log, agents, &engine.Options{Node: name, Worklist: n.list, Metrics: engine.NewMetrics(n.reg)})
	require.NoError(s.t, err)
	s.t.Cleanup(n.stop)
	require.NoError(s.t, n.list.Serve(n.loop))
	// Its first look is finished: what the test begins next it is not asked to judge
	// before that is claimed.
	require.Eventually(s.t, n.looked, within, time.Millisecond)
	return n
}

// looked reports whether the node has looked the list through.
func (n *node) looked() bool { return n.value("helixd_queue_looked_timestamp_seconds") > 0 }

// value is what one of the node's gauges shows, 0 if it has none of that name.
func (n *node) value(gauge string) float64 {
	families, err := n.reg.Gather()
	require.NoError(n.t, err)
	i := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == gauge })
	if i < 0 {
		return 0
	}
	return families[i].Metric[0].GetGauge().GetValue()
}

// die ends all that others could notice of the node, at once and without a
// word, as SIGKILL does.
func (n *node) die() {
	for _, nc := range n.conns {
		nc.Close()
	}
	n.stop()
}

// stop ends the node as its process would end it.
func (n *node) stop() {
	n.once.Do(func() {
		n.loop.Stop()
		n.list.Close()
		n.log.Close()
	})
}

// patiently repeats a request while the node that could answer is too busy to
// do so in time.
func patiently[T any](t *testing.T, request func() (T, error)) (done T, err error) {
	t.Helper()
	require.Eventually(t, func() bool {
		done, err = request()
		return !errors.Is(err, eventlog.ErrUnavailable)
	}, within, time.Millisecond)
	return done, err
}

// begin asks the node for a session.
func (s *site) begin(n *node, session, agent string) (engine.Started, error) {
	s.t.Helper()
	return patiently(s.t, func() (engine.Started, error) {
		return n.loop.Start(s.t.Context(), engine.StartRequest{
			SessionID: session, AgentType: agent, Messages: []agentloop.Input{{Content: "go"}},
		})
	})
}

// start begins a session on the node.
func (s *site) start(n *node, session, agent string) engine.Started {
	s.t.Helper()
	started, err := s.begin(n, session, agent)
	require.NoError(s.t, err)
	return started
}

// resume asks the node to continue with a session.
func (s *site) resume(n *node, req engine.ResumeRequest) (engine.Started, error) {
	s.t.Helper()
	return patiently(s.t, func() (engine.Started, error) { return n.loop.Resume(s.t.Context(), req) })
}

// state is the session's, folded again.
func (s *site) state(session string) *projector.Tree {
	s.t.Helper()
	t, err := snapshot.New(s.log, nil).Head(s.t.Context(), session)
	require.NoError(s.t, err)
	return t
}

// until waits until the session's state is as wanted.
func (s *site) until(session string, wanted func(*projector.Tree) bool) *projector.Tree {
	s.t.Helper()
	var t *projector.Tree
	require.Eventually(s.t, func() bool { t = s.state(session); return wanted(t) }, within, 10*time.Millisecond)
	return t
}

func completed(t *projector.Tree) bool { return t.Status == projector.SessionCompleted }

// claimants are the nodes that have claimed the session, in order.
func (s *site) claimants(session string) (nodes []string) {
	s.t.Helper()
	for r, err := range s.log.Read(s.t.Context(), session, 0, 0) {
		require.NoError(s.t, err)
		if r.Type != "run_claimed" {
			continue
		}
		f, err := r.Fact()
		require.NoError(s.t, err)
		nodes = append(nodes, f.(*fact.RunClaimed).Node)
	}
	return nodes
}

// has reports whether a record of the type is in the session's log.
func (s *site) has(session, kind string) bool {
	s.t.Helper()
	var types []string
	for r, err := range s.log.Read(s.t.Context(), session, 0, 0) {
		require.NoError(s.t, err)
		types = append(types, r.Type)
	}
	return slices.Contains(types, kind)
}

// listed is how many trees stand on the list.
func (s *site) listed() int {
	s.t.Helper()
	stream, err := s.js.Stream(s.t.Context(), worklist.Stream)
	require.NoError(s.t, err)
	return int(stream.CachedInfo().State.Msgs)
}
