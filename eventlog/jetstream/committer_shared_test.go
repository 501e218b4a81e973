package jetstream_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/jetstreamtest"
	"github.com/helixd/helixd/eventlog/logtest"
)

// An atomic batch costs an embedded server milliseconds. If each late session made a
// separate one, all would stay late.
func TestAppendsOfSomeRecordsShareABatch(t *testing.T) {
	t.Parallel()
	srv, nc := embedtest.Start(t, embed.Options{GroupSync: true})
	reg := prometheus.NewRegistry()
	log := jetstreamtest.Open(t, nc, &jetstream.Options{
		Durability: eventlog.DurabilityFsync, Server: srv, Metrics: jetstream.NewMetrics(reg),
	})
	const sessions, rounds = 60, 3
	var wg sync.WaitGroup
	for i := range sessions {
		wg.Go(func() {
			session, head := fmt.Sprint("s", i), uint64(0)
			for range rounds {
				next, err := log.Append(t.Context(), session, head, []eventlog.Entry{logtest.Text(session, "a"), logtest.Text(session, "b")})
				if err != nil {
					t.Error(err)
					return
				}
				if next < head+2 {
					t.Errorf("%d records after %d end at %d", 2, head, next)
				}
				head = next
			}
		})
	}
	wg.Wait()
	shared := groupSizes(t, reg)
	require.NotZero(t, shared.GetSampleCount())
	require.Greater(t, shared.GetSampleSum()/float64(shared.GetSampleCount()), 4.0)
}

func groupSizes(t *testing.T, reg *prometheus.Registry) *dto.Histogram {
	t.Helper()
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == "helixd_group_commit_sessions" {
			return f.GetMetric()[0].GetHistogram()
		}
	}
	require.Fail(t, "no such metric")
	return nil
}
