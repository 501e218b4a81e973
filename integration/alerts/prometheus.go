package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	httpconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/rules"
)

// prometheus does what a prometheus.yml says: it scrapes static targets, evaluates rules, and
// answers GET /api/v1/alerts in Prometheus' form. SIGHUP has it read the targets again. It scrapes
// and evaluates each second, whatever intervals the file has.
type prometheus struct {
	monitor *monitor
	stop    func() // ends the scrapes of the last file that was read
}

// serve runs a prometheus until ctx ends.
func serve(ctx context.Context, o options, dir string) error {
	c, err := config.LoadFile(o.config, false, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	var files []string
	for _, pattern := range c.RuleFiles {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		return errors.New("there are no rules: rule_files of " + o.config + " name no file")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m, err := newMonitor(ctx, dir, o.scale, files...)
	if err != nil {
		return err
	}
	p := &prometheus{monitor: m, stop: func() {}}
	if err := p.apply(ctx, c); err != nil {
		return errors.Join(err, m.close())
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /-/ready", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /api/v1/alerts", p.alerts)
	server := &http.Server{Addr: o.listen, Handler: mux, ReadHeaderTimeout: time.Minute}
	context.AfterFunc(ctx, func() { server.Close() })
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGHUP)
	var reloads sync.WaitGroup
	reloads.Go(func() { p.reload(ctx, o.config, again) })
	say("scrapes and evaluates; alerts are at http://%s/api/v1/alerts", o.listen)
	err = server.ListenAndServe()
	cancel()
	reloads.Wait()
	p.stop()
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, m.close())
}

func (p *prometheus) reload(ctx context.Context, file string, again <-chan os.Signal) {
	for {
		select {
		case <-again:
		case <-ctx.Done():
			return
		}
		c, err := config.LoadFile(file, false, slog.New(slog.DiscardHandler))
		if err == nil {
			err = p.apply(ctx, c)
		}
		if err != nil {
			failed("%s is not read again: %v", file, err)
		}
	}
}

// apply has the targets of a file scraped, and no others.
func (p *prometheus) apply(ctx context.Context, c *config.Config) error {
	scrapes, err := c.GetScrapeConfigs()
	if err != nil {
		return err
	}
	var targets []*target
	for _, s := range scrapes {
		client, err := httpconfig.NewClientFromConfig(s.HTTPClientConfig, s.JobName)
		if err != nil {
			return err
		}
		client.Timeout = scrapeTimeout
		for _, d := range s.ServiceDiscoveryConfigs {
			groups, ok := d.(discovery.StaticConfig)
			if !ok {
				return errors.New(s.JobName + ": only static_configs are supported")
			}
			for _, g := range groups {
				for _, at := range g.Targets {
					address := string(at[model.AddressLabel])
					targets = append(targets, &target{job: s.JobName, instance: address, url: s.Scheme + "://" + address, client: client})
				}
			}
		}
	}
	p.stop()
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	for _, t := range targets {
		all.Go(func() {
			p.monitor.scrape(ctx, t)
			p.monitor.gone(t)
		})
	}
	p.stop = func() {
		cancel()
		all.Wait()
	}
	return nil
}

// alerts answers with the alerts that are pending or firing.
func (p *prometheus) alerts(rw http.ResponseWriter, _ *http.Request) {
	type alert struct {
		Labels      labels.Labels `json:"labels"`
		Annotations labels.Labels `json:"annotations"`
		State       string        `json:"state"`
		ActiveAt    time.Time     `json:"activeAt"`
		Value       string        `json:"value"`
	}
	all := []alert{}
	for _, r := range p.monitor.manager.AlertingRules() {
		r.ForEachActiveAlert(func(a *rules.Alert) {
			all = append(all, alert{a.Labels, a.Annotations, a.State.String(), a.ActiveAt, strconv.FormatFloat(a.Value, 'e', -1, 64)})
		})
	}
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(map[string]any{"status": "success", "data": map[string]any{"alerts": all}}) // the client may be gone
}
