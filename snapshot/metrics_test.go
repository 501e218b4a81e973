package snapshot_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/snapshot"
	foldsmem "github.com/helixd/helixd/snapshot/memory"
)

func TestMetrics(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := snapshot.NewMetrics(reg)
	log, folds := memory.New(), &foldsmem.Folds{}
	states := snapshot.New(log, &snapshot.StoreOptions{Folds: folds, SaveEvery: 50, Metrics: m})
	fill(t, log, 120)
	for range 2 { // first all records, whose fold is saved; then the saved fold and the record at its head
		_, err := states.Head(t.Context(), "s")
		require.NoError(t, err)
	}
	for _, saved := range []snapshot.Saved{
		{Sequence: 100, Version: projector.Version, State: []byte(`{`)},
		{Sequence: 90, Version: projector.Version, Digest: "of something else", State: []byte(`{"head":90}`)},
	} {
		saveFold(t, folds, saved)
		_, err := states.At(t.Context(), "s", saved.Sequence)
		require.NoError(t, err)
	}
	_, err := snapshot.New(log, &snapshot.StoreOptions{Folds: broken{}, SaveEvery: 50, Metrics: m}).Head(t.Context(), "s")
	require.NoError(t, err)

	families, err := reg.Gather()
	require.NoError(t, err)
	var text strings.Builder
	for _, f := range families {
		_, err := expfmt.MetricFamilyToText(&text, f)
		require.NoError(t, err)
	}
	require.Subset(t, strings.Split(text.String(), "\n"), []string{
		`helixd_fold_duration_seconds_count 5`,
		`helixd_fold_records_total 431`, // 120 + 1 + 100 + 90 + 120
		`helixd_folds_loaded_total 1`,
		`helixd_folds_saved_total 3`,
		`helixd_fold_failures_total{what="damaged"} 1`,
		`helixd_fold_failures_total{what="stale"} 1`,
		`helixd_fold_failures_total{what="read"} 1`,
		`helixd_fold_failures_total{what="save"} 1`,
	})
	problems, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Empty(t, problems)
}
