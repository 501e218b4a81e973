package doctor

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
	"github.com/helixd/helixd/eventlog/jetstream/internal/streams"
	"github.com/helixd/helixd/eventlog/jetstream/restore"
	"github.com/helixd/helixd/integration/testkit"
)

// examined is a connection to a server with a log.
func examined(t *testing.T) *nats.Conn {
	t.Helper()
	_, nc := embedtest.Start(t, embed.Options{})
	log, err := jetstream.Open(t.Context(), nc, nil)
	require.NoError(t, err)
	require.NoError(t, log.Close())
	return nc
}

// examine returns the checks with an id.
func examine(t *testing.T, nc *nats.Conn, o Options, id string) (checks []Check) {
	t.Helper()
	require.NoError(t, Examine(t.Context(), nc, &o, func(c Check) {
		require.Equal(t, c.Status == Healthy, c.Advice == "", "%+v", c)
		if c.ID == id {
			checks = append(checks, c)
		}
	}))
	return checks
}

func TestExamineClock(t *testing.T) {
	t.Parallel()
	nc := examined(t)
	for _, tc := range []struct {
		wrong time.Duration
		want  Health
		found string
	}{
		{0, Healthy, "within "},
		{-500 * time.Millisecond, Healthy, "within "},
		{-10 * time.Second, Warning, "the clock of server helixd is "},
		{10 * time.Second, Warning, "behind this machine's"},
		{-time.Hour, Problem, "ahead of this machine's"},
	} {
		checks := examine(t, nc, Options{Now: func() time.Time { return time.Now().Add(tc.wrong) }}, CheckClock)
		require.Len(t, checks, 1)
		require.Equal(t, tc.want, checks[0].Status, tc.wrong)
		require.Contains(t, checks[0].Found, tc.found)
		if tc.want != Healthy {
			require.Contains(t, checks[0].Advice, "NTP")
			require.Equal(t, "helixd", checks[0].Target)
		}
	}
}

// An answer with a long delay in one direction says less about the clock.
func TestASlowAnswerIsNoWrongClock(t *testing.T) {
	began := time.Unix(1000, 0)
	x := &exam{Report: func(c Check) { require.Equal(t, Healthy, c.Status, c.Found) }}
	x.readClock("n", began, began, began.Add(4*time.Second))
	require.NoError(t, x.clock(t.Context()))
}

func TestExaminePartitions(t *testing.T) {
	t.Parallel()
	nc := examined(t)
	checks := examine(t, nc, Options{Partitions: 4}, CheckPartitions)
	require.Len(t, checks, 1)
	require.Equal(t, Problem, checks[0].Status)
	require.Contains(t, checks[0].Advice, "set nats.partitions to 1")
	require.Equal(t, []Check{{ID: CheckPartitions, Status: Healthy, Found: "1"}}, examine(t, nc, Options{}, CheckPartitions))
	require.Equal(t, []Check{{ID: CheckPartitions, Status: Healthy, Found: "1: helixd serve grows the log to 4"}},
		examine(t, nc, Options{Partitions: 4, Grows: true}, CheckPartitions))
}

func TestExamineALogOfALaterFormat(t *testing.T) {
	t.Parallel()
	nc := examined(t)
	js, err := natsjs.New(nc, natsjs.WithDefaultTimeout(time.Minute))
	require.NoError(t, err)
	s, err := js.Stream(t.Context(), "HELIX_LOG_0")
	require.NoError(t, err)
	c := s.CachedInfo().Config
	c.Metadata["helix.partitions"], c.Metadata["helix.helixd"] = "1 v3", "v9.8.7"
	_, err = js.UpdateStream(t.Context(), c)
	require.NoError(t, err)
	checks := examine(t, nc, Options{}, CheckFormat)
	require.Len(t, checks, 1)
	require.Equal(t, Problem, checks[0].Status)
	require.Contains(t, checks[0].Found, "the log has format 3, written by helixd v9.8.7; this is helixd")
	require.Contains(t, checks[0].Advice, "restore a backup of this version")
}

func TestExamineAMissingStream(t *testing.T) {
	t.Parallel()
	nc := examined(t)
	js, err := natsjs.New(nc, natsjs.WithDefaultTimeout(time.Minute))
	require.NoError(t, err)
	require.NoError(t, js.DeleteStream(t.Context(), "HELIX_SEG_0"))
	checks := examine(t, nc, Options{}, CheckStreams)
	require.Len(t, checks, 1)
	require.Equal(t, Warning, checks[0].Status)
	require.Contains(t, checks[0].Advice, "if stream HELIX_SEG_0 was deleted, restore it")

	_, err = js.CreateStream(t.Context(), natsjs.StreamConfig{Name: "MINE", Subjects: []string{"helix.seg.>"}})
	require.NoError(t, err)
	checks = examine(t, nc, Options{}, CheckStreams)
	require.NotEmpty(t, checks)
	require.Equal(t, Problem, checks[0].Status)
	require.Equal(t, "MINE", checks[0].Target)
	require.Contains(t, checks[0].Advice, "away from stream MINE")
}

func TestExamineAHalfRestoredLog(t *testing.T) {
	t.Parallel()
	nc := examined(t)
	js, err := natsjs.New(nc, natsjs.WithDefaultTimeout(time.Minute))
	require.NoError(t, err)
	for name := range js.StreamNames(t.Context()).Name() {
		require.NoError(t, js.DeleteStream(t.Context(), name))
	}
	r, err := restore.Begin(t.Context(), nc, restore.Options{Ends: []uint64{1}})
	require.NoError(t, err)
	defer r.Close()
	checks := examine(t, nc, Options{}, CheckStreams)
	require.Len(t, checks, 1)
	require.Equal(t, Problem, checks[0].Status)
	require.Contains(t, checks[0].Found, "a restore has begun here and not ended")
	require.NoError(t, r.Finish(t.Context()))
	checks = examine(t, nc, Options{}, CheckStreams)
	require.Len(t, checks, 1)
	require.Equal(t, Healthy, checks[0].Status)
}

func TestExamineVersions(t *testing.T) {
	t.Parallel()
	nc := examined(t)
	checks := examine(t, nc, Options{}, CheckVersions)
	require.Len(t, checks, 1)
	require.Equal(t, Healthy, checks[0].Status)

	// Servers that a test can't run.
	answers, err := nc.Subscribe(streams.PeersSubject, func(m *nats.Msg) {
		m.Respond(fmt.Appendf(nil, `{"server":{"name":"n1","ver":"2.12.1","time":%q}}`, time.Now().Add(90*time.Second).Format(time.RFC3339Nano)))
	})
	require.NoError(t, err)
	defer answers.Unsubscribe()
	var x *exam
	for began := time.Now(); x == nil || len(x.times) == 0 && time.Since(began) < time.Minute; { // until n1 answers in time
		checks = nil
		x = &exam{
			nc: nc, opts: Options{Now: time.Now}, denied: map[string]bool{}, Report: func(c Check) { checks = append(checks, c) },
			wants: []want{{info: &natsjs.StreamInfo{Cluster: &natsjs.ClusterInfo{Leader: "n1", Replicas: []*natsjs.PeerInfo{{Name: "n2"}}}}}},
		}
		require.NoError(t, x.servers(t.Context()))
	}
	require.NoError(t, x.clock(t.Context()))
	require.Len(t, checks, 3)
	require.Equal(t, Problem, checks[0].Status)
	require.Contains(t, checks[0].Advice, "upgrade server n1 to nats-server 2.15.2 or later")
	require.Equal(t, Warning, checks[1].Status)
	require.Contains(t, checks[1].Found, "did not say their version: n2")
	require.Equal(t, "n1", checks[2].Target)
	require.Equal(t, Problem, checks[2].Status)
	require.Contains(t, checks[2].Found, "the clock of server n1 is 1m")
}

func TestExamineAnOldServer(t *testing.T) {
	testkit.Long(t)
	t.Parallel() // most of it is waiting
	nc, err := nats.Connect(storetest.OldServer(t, "2.11.4"))
	require.NoError(t, err)
	t.Cleanup(nc.Close) // before its server ends
	checks := examine(t, nc, Options{}, CheckVersions)
	require.NotEmpty(t, checks)
	require.Equal(t, Problem, checks[0].Status)
	require.Contains(t, checks[0].Advice, "upgrade server old to nats-server 2.15.2 or later")
}

// Durability that the options state counts; nothing is called durable without knowledge.
func TestExamineDurability(t *testing.T) {
	t.Parallel()
	nc := examined(t)
	for d, want := range map[eventlog.Durability]Health{
		"": Warning, eventlog.DurabilityFsync: Healthy, "interval=1s": Healthy,
	} {
		checks := examine(t, nc, Options{Durability: d}, CheckDurability)
		require.Len(t, checks, 1)
		require.Equal(t, want, checks[0].Status, d)
		require.Contains(t, checks[0].Found, d.Survives())
	}
}
