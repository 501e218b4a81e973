package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/helixd/helixd/integration/deployment"
)

// row is a figure; Value is nil if this system does not tell.
type row struct {
	What  string   `json:"what"`
	Unit  string   `json:"unit"`
	Value *float64 `json:"value"`
}

// report is the result of a run.
type report struct {
	Clients    int     `json:"clients"` // idle, and as many active
	Rate       float64 `json:"rate"`    // chunks/s of each active client's session
	By         string  `json:"by"`
	Durability string  `json:"durability"`
	Cores      int     `json:"cores"`
	Seconds    float64 `json:"seconds"`
	// Reached says whether p99 was within the aim.
	Reached bool  `json:"reached"`
	Rows    []row `json:"rows"`

	first, now float64 // MiB resident without clients, and at the last look
}

func newReport(o options) *report {
	return &report{
		Clients: o.clients, Rate: o.rate, By: o.by, Durability: o.durability, Cores: runtime.NumCPU(), Seconds: o.span.Seconds(),
	}
}

func (r *report) add(what, unit string, value float64) {
	added := row{What: what, Unit: unit}
	if !math.IsNaN(value) {
		added.Value = &value
	}
	r.Rows = append(r.Rows, added)
}

// memory reports the daemon's memory with all that it has so far and, if that
// is not "", what each of those that came since the last call has added.
func (r *report) memory(ctx context.Context, d *daemon, with, each string) error {
	if err := deployment.Sleep(ctx, calm); err != nil {
		return err
	}
	now := deployment.Resident(d.PID())
	if each == "" {
		r.first = now
	}
	r.addMemory("memory with "+with, now, d)
	if each != "" {
		r.add(each, "KiB RSS", 1024*(now-r.now)/float64(r.Clients))
	}
	r.now = now
	return nil
}

func (r *report) addMemory(what string, mib float64, d *daemon) {
	heap, stacks := heapMiB(d.logs())
	r.add(what, "MiB RSS", mib)
	r.add("in use at the last collection: heap", "MiB", heap)
	r.add("in use at the last collection: stacks", "MiB", stacks)
}

// underLoad watches the daemon until the last chunk is due.
func (r *report) underLoad(ctx context.Context, l *load, d *daemon) error {
	if err := deployment.Sleep(ctx, l.begin+l.warm-l.now()); err != nil {
		return err
	}
	before, began := cpuTimes(d.PID()), time.Now()
	most := 0.0
	for time.Since(began) < l.span {
		if err := deployment.Sleep(ctx, min(time.Second, l.span-time.Since(began))); err != nil {
			return err
		}
		most = max(most, deployment.Resident(d.PID()))
	}
	daemon, self, others := cpuTimes(d.PID()).shares(before, time.Since(began))
	r.addMemory("memory under load, at most", most, d)
	r.add("per client of all, its run included", "KiB RSS", 1024*(most-r.first)/float64(2*r.Clients))
	r.add("CPU of the daemon", "% of all cores", 100*daemon)
	r.add("CPU of the load, its model and its clients", "% of all cores", 100*self)
	r.add("CPU of everything else on this machine", "% of all cores", 100*others)
	return nil
}

func (r *report) latencies(l *load) {
	heard, late := slices.Concat(l.heard...), slices.Concat(l.late...)
	r.Reached = heard.At(0.99) < aim
	for _, q := range []float64{0.5, 0.9, 0.99, 0.999, 1} {
		name := "max"
		if q < 1 {
			name = "p" + strconv.FormatFloat(100*q, 'f', -1, 64)
		}
		r.add("append to client, "+name, "ms", heard.MS(q))
	}
	r.add("chunks measured", "", float64(len(heard)))
	r.add("the load's own delay, due to append, p99", "ms", late.MS(0.99))
}

var goroutine = regexp.MustCompile(`(?m)^goroutine \d+ `)

// goroutines reports what a dump of all goroutines shows.
func (r *report) goroutines(dump string) {
	r.add("goroutines of the daemon, with all clients", "", float64(len(goroutine.FindAllString(dump, -1))))
}

func (r *report) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

func (r *report) writeMarkdown(w io.Writer) error {
	verdict := "reached"
	if !r.Reached {
		verdict = "**missed**"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d idle and %d active SSE clients of one daemon (%s) on %d cores; %d sessions × %g chunks/s by %s, %g s.\n",
		r.Clients, r.Clients, r.Durability, r.Cores, r.Clients, r.Rate, r.By, r.Seconds)
	fmt.Fprintf(&b, "Append to client, p99 under %s: %s.\n\n| what | unit | value |\n| --- | --- | --- |\n", aim, verdict)
	for _, row := range r.Rows {
		value := "unknown"
		if row.Value != nil {
			value = strconv.FormatFloat(*row.Value, 'f', places(*row.Value), 64)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", row.What, row.Unit, value)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// places has three digits that count shown; more would be noise.
func places(v float64) int {
	if v == 0 || v == math.Trunc(v) {
		return 0
	}
	return max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
}

// syncCost reports what the disk takes for a small synced write, since every
// chunk waits for one in the durability fsync.
func (r *report) syncCost(dir string) error {
	took, err := deployment.SyncCost(dir)
	if err != nil {
		return err
	}
	r.add("disk: write and fsync of 4 KiB, p50", "ms", took.MS(0.5))
	r.add("disk: the same, p99", "ms", took.MS(0.99))
	return nil
}
