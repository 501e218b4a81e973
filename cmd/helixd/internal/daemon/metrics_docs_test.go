package daemon

import (
	goflag "flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
)

var updateMetricsDocs = goflag.Bool("update-metrics", false, "write the table of docs/reference/metrics.md")

const (
	metricsDocs  = "../../../../docs/reference/metrics.md"
	metricsBegin = "<!-- the table: go test ./cmd/helixd/internal/daemon -run TestMetricsDocs -update-metrics -->\n"
	metricsEnd   = "<!-- the table ends -->\n"
)

// sampled registers each vector with a child, so that gathering shows it.
type sampled struct{ *prometheus.Registry }

var variableLabels = regexp.MustCompile(`variableLabels: \{([^}]*)\}`)

func (s sampled) MustRegister(all ...prometheus.Collector) {
	s.Registry.MustRegister(all...)
	for _, c := range all {
		descriptions := make(chan *prometheus.Desc, 100)
		c.Describe(descriptions)
		close(descriptions)
		labels := prometheus.Labels{}
		for d := range descriptions {
			for name := range strings.SplitSeq(variableLabels.FindStringSubmatch(d.String())[1], ",") {
				if name != "" {
					labels[name] = ""
				}
			}
		}
		switch c := c.(type) {
		case *prometheus.CounterVec:
			c.With(labels)
		case *prometheus.GaugeVec:
			c.With(labels)
		case *prometheus.HistogramVec:
			c.With(labels)
		}
	}
}

// measurements are all of the daemon's own.
func measurements(t *testing.T) (own []*dto.MetricFamily) {
	t.Helper()
	reg := sampled{prometheus.NewRegistry()}
	register(reg)
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "helixd_") {
			own = append(own, f)
		}
	}
	return own
}

// TestMetricsDocs: the page lists what there is.
func TestMetricsDocs(t *testing.T) {
	page, err := os.ReadFile(metricsDocs)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(page), metricsBegin)
	require.True(t, found)
	_, after, found := strings.Cut(rest, metricsEnd)
	require.True(t, found)
	var table strings.Builder
	table.WriteString("\n| metric | kind | labels | what |\n| --- | --- | --- | --- |\n")
	for _, f := range measurements(t) {
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, "`"+l.GetName()+"`")
		}
		slices.Sort(labels)
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", f.GetName(), strings.ToLower(f.GetType().String()), strings.Join(labels, ", "), f.GetHelp())
	}
	table.WriteString("\n")
	want := before + metricsBegin + table.String() + metricsEnd + after
	if *updateMetricsDocs {
		require.NoError(t, os.WriteFile(metricsDocs, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(page), "run: go test ./cmd/helixd/internal/daemon -run TestMetricsDocs -update-metrics")
}

// TestMetricsInAlerts: what the page's expressions name exists, with those
// labels.
func TestMetricsInAlerts(t *testing.T) {
	page, err := os.ReadFile(metricsDocs)
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(page), "```yaml\ngroups:")
	require.True(t, found)
	rules, _, found := strings.Cut(rest, "```")
	require.True(t, found)
	require.Contains(t, rules, "helixd_queue_nodes", "an alert for a node that is gone")
	labels := map[string][]string{}
	for _, f := range measurements(t) {
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels[f.GetName()] = append(labels[f.GetName()], l.GetName())
		}
		labels[f.GetName()] = append(labels[f.GetName()], "le")
	}
	used := regexp.MustCompile(`(helixd_[a-z_]+)(?:\{([^}]*)\})?`).FindAllStringSubmatch(rules, -1)
	require.NotEmpty(t, used)
	for _, u := range used {
		name := u[1]
		for _, suffix := range []string{"_bucket", "_count", "_sum"} {
			if base := strings.TrimSuffix(name, suffix); labels[base] != nil {
				name = base
			}
		}
		require.Contains(t, labels, name)
		for _, l := range regexp.MustCompile(`([a-z_]+)\s*[=!]`).FindAllStringSubmatch(u[2], -1) {
			require.Contains(t, labels[name], l[1], name)
		}
	}
}
