package daemon

import (
	"encoding/json"
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

// foreign are the metrics of Go and the process.
func foreign(t *testing.T) (names []string) {
	t.Helper()
	reg := prometheus.NewRegistry()
	register(reg)
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "helixd_") {
			names = append(names, f.GetName())
		}
	}
	return names
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

// TestMetricsInAlerts: what the alerts and the dashboard name exists, with those labels, and the page
// about alerts has a section about each.
func TestMetricsInAlerts(t *testing.T) {
	file, err := os.ReadFile("../../packaging/prometheus/helixd.rules.yaml")
	require.NoError(t, err)
	page, err := os.ReadFile("../../../../docs/operations/alerts.md")
	require.NoError(t, err)
	alerts := regexp.MustCompile(`(?m)^ +- alert: (\w+)$`).FindAllStringSubmatch(string(file), -1)
	require.Greater(t, len(alerts), 15)
	for _, a := range alerts {
		require.Contains(t, string(page), "\n### "+a[1]+"\n")
		require.Contains(t, string(file), "runbook: docs/operations/alerts.md#"+strings.ToLower(a[1])+"\n")
	}
	require.Equal(t, len(alerts), strings.Count(string(page), "\n### Helixd"), "the page has alerts that there are not")
	dashboard, err := os.ReadFile("../../packaging/grafana/helixd.json")
	require.NoError(t, err)
	var board struct {
		Panels []struct {
			Type, Title, Description string
			Targets                  []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(dashboard, &board))
	rules := string(file)
	for _, p := range board.Panels {
		if p.Type == "row" {
			continue
		}
		require.NotEmpty(t, p.Description, p.Title)
		require.NotEmpty(t, p.Targets, p.Title)
		for _, target := range p.Targets {
			rules += target.Expr + "\n"
		}
	}
	for _, name := range regexp.MustCompile(`\b(?:go|process)_[a-z_]+`).FindAllString(rules, -1) {
		require.Contains(t, foreign(t), name)
	}
	labels := map[string][]string{}
	for _, f := range measurements(t) {
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels[f.GetName()] = append(labels[f.GetName()], l.GetName())
		}
		labels[f.GetName()] = append(labels[f.GetName()], "le")
	}
	for _, always := range []string{"job", "instance"} { // Prometheus adds them
		for name := range labels {
			labels[name] = append(labels[name], always)
		}
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
