package jetstream_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/jetstreamtest"
	"github.com/helixd/helixd/eventlog/logtest"
)

// scrape returns the metrics in Prometheus' text format.
func scrape(t testing.TB, reg *prometheus.Registry) string {
	t.Helper()
	families, err := reg.Gather()
	require.NoError(t, err)
	var text strings.Builder
	for _, f := range families {
		_, err := expfmt.MetricFamilyToText(&text, f)
		require.NoError(t, err)
	}
	return text.String()
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	nc, _ := serve(t, t.TempDir())
	log := jetstreamtest.Open(t, nc, &jetstream.Options{Durability: eventlog.DurabilityFsync, Metrics: jetstream.NewMetrics(reg)})
	shows := func(lines ...string) {
		t.Helper()
		require.Eventually(t, func() bool {
			text := "\n" + scrape(t, reg)
			for _, line := range lines {
				if !strings.Contains(text, "\n"+line+"\n") {
					return false
				}
			}
			return true
		}, time.Minute, 10*time.Millisecond, "%s\nof\n%s", lines, scrape(t, reg))
	}
	shows(`helixd_durability_info{backend="jetstream",durability="fsync",mode="fsync"} 1`)

	entry := logtest.Text("s", "first")
	head, err := log.Append(t.Context(), "s", 0, []eventlog.Entry{entry, entry})
	require.NoError(t, err)
	_, err = log.Append(t.Context(), "s", 0, []eventlog.Entry{entry})
	require.Error(t, err)
	_, err = log.Append(t.Context(), "s", head, nil)
	require.Error(t, err)
	shows(`helixd_append_duration_seconds_count{mode="fsync"} 1`,
		`helixd_append_failures_total{reason="conflict"} 1`, `helixd_append_failures_total{reason="refused"} 1`,
		`helixd_append_records_total 2`, fmt.Sprintf(`helixd_append_bytes_total %d`, 2*len(entry.Payload)),
		`helixd_hub_sessions 0`, `helixd_followers 0`)

	ctx, cancel := context.WithCancel(t.Context())
	var followers sync.WaitGroup
	for _, session := range []string{"s", "s", "s"} {
		followers.Go(func() {
			for range log.Follow(ctx, session, 0) {
			}
		})
	}
	shows(`helixd_hub_sessions 1`, `helixd_followers 3`, `helixd_catch_up_reads_total{cause="join"} 3`, `helixd_catch_up_records_total 6`)
	cancel()
	followers.Wait()
	shows(`helixd_hub_sessions 0`, `helixd_followers 0`)

	require.NoError(t, log.Seal(t.Context(), "s"))
	shows(`helixd_segments_sealed_total 1`)

	problems, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Empty(t, problems)
}

// TestMetricsOfGroups: many concurrent sessions eventually share batches.
func TestMetricsOfGroups(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	nc, _ := serve(t, t.TempDir())
	log := jetstreamtest.Open(t, nc, &jetstream.Options{Durability: eventlog.DurabilityFsync, Metrics: jetstream.NewMetrics(reg)})
	const sessions = 200
	heads, appends := make([]uint64, sessions), 0
	for deadline := time.Now().Add(time.Minute); ; {
		var wg sync.WaitGroup
		for i := range sessions {
			wg.Go(func() {
				session := fmt.Sprint("s", i)
				var err error
				if heads[i], err = log.Append(t.Context(), session, heads[i], []eventlog.Entry{logtest.Text(session, "x")}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		appends += sessions
		text := scrape(t, reg)
		require.Contains(t, text, fmt.Sprintf(`helixd_append_duration_seconds_count{mode="fsync"} %d`, appends))
		require.NotRegexp(t, `session="`, text, "no label grows with the sessions")
		if !strings.Contains(text, "helixd_group_commit_sessions_count 0") {
			return
		}
		require.True(t, time.Now().Before(deadline), "no batch was shared")
	}
}
