package worklist_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/worklist"
)

// offers is a loop that holds nothing and passes on what it is offered.
type offers struct {
	agents []string
	known  chan bool
}

func (o offers) AgentTypes() []string                        { return o.agents }
func (o offers) InitialState(string) (json.RawMessage, bool) { return nil, false }
func (o offers) Holds(string, uint64) bool                   { return false }
func (o offers) Offer(_ string, _ uint64, known bool)        { o.known <- known }
func (o offers) Load() int                                   { return 0 }

// list serves one for a loop. It is read for what nodes announce only, and an entry is old at once.
func (s *site) list(name string, loop worklist.Loop) *worklist.Worklist {
	s.t.Helper()
	n := node{t: s.t, reg: prometheus.NewPedanticRegistry()}
	o := worklist.Options{Node: name, Patience: time.Nanosecond, Metrics: worklist.NewMetrics(n.reg)}
	o.NeverScan()
	list, err := worklist.Open(s.t.Context(), s.connect(), o)
	require.NoError(s.t, err)
	s.t.Cleanup(list.Close)
	require.NoError(s.t, list.Serve(loop))
	require.Eventually(s.t, n.looked, within, time.Millisecond)
	return list
}

// A node's clock does not say how old a ticket is, which the server dates: a node that is woken
// does not take a tree for idle whose work may not be appended yet.
func TestAWokenNodeDoesNotJudgeTheAgeOfATicket(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	known := make(chan bool, 4)
	list := s.list("a", offers{[]string{"x"}, known})
	_, err := list.Announce(t.Context(), "x", "s")
	require.NoError(t, err)
	list.Wake("", "x", "s")
	for range 2 { // the second time since no node has taken it up
		require.False(t, <-known)
	}
}

// A node is not woken again for a tree that has been finished meanwhile.
func TestNodesAreNotWokenForWhatIsFinished(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	front := s.list("front", offers{})
	vanish := ghost(t, s, "x")
	defer vanish()
	require.Eventually(t, func() bool { return front.Hosted("x") }, within, time.Millisecond)
	nc := s.connect()
	wakes, err := nc.SubscribeSync("helix.node.wake")
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	_, err = front.Announce(t.Context(), "x", "waits")
	require.NoError(t, err)
	front.Wake("", "x", "finished")
	front.Wake("", "x", "waits")
	woken := map[string]int{}
	for woken["waits"] < 3 {
		m, err := wakes.NextMsg(within)
		require.NoError(t, err)
		var w struct{ Session string }
		require.NoError(t, json.Unmarshal(m.Data, &w))
		woken[w.Session]++
	}
	require.Equal(t, 1, woken["finished"])
}

// While the list can't be read, no node is woken again: the tree may be finished.
func TestNodesAreNotWokenWhileTheListIsOutOfReach(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	front := s.list("front", offers{})
	vanish := ghost(t, s, "x")
	defer vanish()
	require.Eventually(t, func() bool { return front.Hosted("x") }, within, time.Millisecond)
	nc := s.connect()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	require.NoError(t, js.DeleteStream(t.Context(), worklist.Stream))
	heard := make(chan *nats.Msg, 64)
	const wakes, looks = "helix.node.wake", "$JS.API.STREAM.MSG.GET." + worklist.Stream
	for _, subject := range []string{wakes, looks} {
		_, err = nc.ChanSubscribe(subject, heard)
		require.NoError(t, err)
	}
	require.NoError(t, nc.Flush())
	woken := map[string]int{}
	for _, session := range []string{"s", "later"} { // all that the first look leads to is done before the second one
		front.Wake("", "x", session)
		for m := range heard {
			if m.Subject == looks {
				break
			}
			var w struct{ Session string }
			require.NoError(t, json.Unmarshal(m.Data, &w))
			woken[w.Session]++
		}
	}
	require.Equal(t, 1, woken["s"])
}
