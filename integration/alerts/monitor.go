package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/tsdb"
)

const (
	interval      = time.Second     // between two scrapes of a target, and between two evaluations
	scrapeTimeout = 4 * time.Second // a process that stalls for a moment still answers
	leastRange    = 15 * time.Second
)

// monitor is a Prometheus: it scrapes targets into a database and evaluates rules.
type monitor struct {
	db      *tsdb.DB
	manager *rules.Manager
	clients *http.Client

	mu     sync.Mutex
	firing map[alert]time.Time // since when, of alerts that have fired at least once
}

// alert is a rule's alert of one deployment.
type alert struct{ job, name string }

// target is a node that is scraped.
type target struct {
	job, instance, url string
	client             *http.Client // that sends what the target asks for; nil: it asks for nothing
	// made, if set, are the samples of a target without a process, in Prometheus' text format.
	made func() string
	seen map[string]labels.Labels // the series of the last scrape
}

// newMonitor evaluates the rules of files. All durations of the rules are divided by scale.
func newMonitor(ctx context.Context, dir string, scale float64, files ...string) (*monitor, error) {
	quiet := slog.New(slog.DiscardHandler)
	db, err := tsdb.Open(filepath.Join(dir, "prometheus"), quiet, nil, tsdb.DefaultOptions(), nil)
	if err != nil {
		return nil, err
	}
	m := &monitor{db: db, firing: map[alert]time.Time{}, clients: &http.Client{Timeout: scrapeTimeout}}
	language := parser.NewParser(parser.Options{})
	engine := promql.NewEngine(promql.EngineOpts{
		Logger: quiet, MaxSamples: 10_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: language,
	})
	m.manager = rules.NewManager(&rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(engine, db), NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
		Context: ctx, AppendableV2: db, Queryable: db, Logger: quiet, GroupLoader: scaledLoader{language, scale}, Parser: language,
	})
	if err := m.manager.Update(interval, files, labels.EmptyLabels(), "", nil); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	go m.manager.Run()
	go m.watch(ctx)
	return m, nil
}

func (m *monitor) close() error {
	m.manager.Stop()
	return m.db.Close()
}

// scaledLoader reads rules whose durations are divided by a factor, so that an alert "for: 10m" fires
// within a minute. Constants of expressions, such as "> 60" seconds, stay.
type scaledLoader struct {
	parser parser.Parser
	scale  float64
}

func (l scaledLoader) Load(file string, ignoreUnknown bool, scheme model.ValidationScheme) (*rulefmt.RuleGroups, []error) {
	all, errs := rulefmt.ParseFile(file, ignoreUnknown, scheme, l.parser, nil)
	if all == nil {
		return nil, errs
	}
	for _, g := range all.Groups {
		for i := range g.Rules {
			g.Rules[i].For = model.Duration(float64(g.Rules[i].For) / l.scale)
		}
	}
	return all, errs
}

func (l scaledLoader) Parse(query string) (parser.Expr, error) {
	expr, err := l.parser.ParseExpr(query)
	if err != nil || l.scale == 1 {
		return expr, err
	}
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if m, ok := n.(*parser.MatrixSelector); ok {
			m.Range = max(time.Duration(float64(m.Range)/l.scale), leastRange) // the daemon looks every 5 or 10 s
		}
		return nil
	})
	return expr, nil
}

// scrape scrapes a target until ctx ends.
func (m *monitor) scrape(ctx context.Context, t *target) {
	t.seen = map[string]labels.Labels{}
	every := time.NewTicker(interval)
	defer every.Stop()
	for {
		if err := m.once(ctx, t); err != nil && ctx.Err() == nil {
			failed("scrape of %s %s: %v", t.job, t.instance, err)
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return
		}
	}
}

// once scrapes a target, as Prometheus does: with the sample up, and a marker for each series that is not
// there any more.
func (m *monitor) once(ctx context.Context, t *target) error {
	began := time.Now()
	text, err := m.text(ctx, t)
	if ctx.Err() != nil {
		return nil
	}
	up := 1.0
	if err != nil {
		up = 0
	}
	app := m.db.Appender(ctx)
	defer app.Rollback() //nolint:errcheck // after Commit it does nothing
	at := began.UnixMilli()
	own := func(name string) labels.Labels {
		return labels.FromStrings(labels.MetricName, name, "job", t.job, "instance", t.instance)
	}
	if _, err := app.Append(0, own("up"), at, up); err != nil {
		return err
	}
	now := map[string]labels.Labels{}
	if len(text) > 0 {
		p, err := textparse.New(text, "text/plain; version=0.0.4", nil, textparse.ParserOptions{})
		if err != nil {
			return err
		}
		for {
			entry, err := p.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			if entry != textparse.EntrySeries {
				continue
			}
			_, _, v := p.Series()
			var of labels.Labels
			p.Labels(&of)
			b := labels.NewBuilder(of)
			b.Set("job", t.job).Set("instance", t.instance)
			of = b.Labels()
			if _, err := app.Append(0, of, at, v); err != nil {
				return err
			}
			now[of.String()] = of
		}
	}
	for key, of := range t.seen {
		if _, still := now[key]; !still {
			if _, err := app.Append(0, of, at, math.Float64frombits(value.StaleNaN)); err != nil {
				return err
			}
		}
	}
	t.seen = now
	return app.Commit()
}

// gone marks the series of a target that is not scraped any more.
func (m *monitor) gone(t *target) {
	app := m.db.Appender(context.Background())
	defer app.Rollback() //nolint:errcheck // after Commit it does nothing
	at := time.Now().UnixMilli()
	up := labels.FromStrings(labels.MetricName, "up", "job", t.job, "instance", t.instance)
	for _, of := range append(slices.Collect(maps.Values(t.seen)), up) {
		if _, err := app.Append(0, of, at, math.Float64frombits(value.StaleNaN)); err != nil {
			failed("the end of %s %s: %v", t.job, t.instance, err)
			return
		}
	}
	if err := app.Commit(); err != nil {
		failed("the end of %s %s: %v", t.job, t.instance, err)
	}
}

func (m *monitor) text(ctx context.Context, t *target) ([]byte, error) {
	if t.made != nil {
		return []byte(t.made()), nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	resp, err := cmp.Or(t.client, m.clients).Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New(resp.Status)
	}
	var b bytes.Buffer
	_, err = io.Copy(&b, resp.Body)
	return b.Bytes(), err
}

// watch notes which alerts fire.
func (m *monitor) watch(ctx context.Context) {
	every := time.NewTicker(interval / 4)
	defer every.Stop()
	for {
		select {
		case <-every.C:
		case <-ctx.Done():
			return
		}
		for _, r := range m.manager.AlertingRules() {
			if err := r.LastError(); err != nil {
				failed("rule %s: %v", r.Name(), err)
			}
			r.ForEachActiveAlert(func(a *rules.Alert) {
				if a.State == rules.StateFiring {
					m.note(alert{a.Labels.Get("job"), r.Name()}, a)
				}
			})
		}
	}
}

func (m *monitor) note(a alert, of *rules.Alert) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.firing[a]; !known {
		m.firing[a] = time.Now()
		say("fires: %s of %s: %s", a.name, a.job, of.Annotations.Get("summary"))
	}
}

// forget has alerts of a deployment noted again when they fire.
func (m *monitor) forget(job string, names []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range names {
		delete(m.firing, alert{job, name})
	}
}

// names returns the names of all alerts.
func (m *monitor) names() (all []string) {
	for _, r := range m.manager.AlertingRules() {
		all = append(all, r.Name())
	}
	return all
}

// fired returns when alerts of a deployment have fired for the first time.
func (m *monitor) fired(job string) map[string]time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]time.Time{}
	for a, at := range m.firing {
		if a.job == job {
			all[a.name] = at
		}
	}
	return all
}

// any returns all that has fired.
func (m *monitor) any() (all []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for a := range maps.Keys(m.firing) {
		all = append(all, fmt.Sprintf("%s of %s", a.name, a.job))
	}
	slices.Sort(all)
	return all
}
