//go:build unix

package main

import (
	"fmt"
	"runtime"
	"time"

	"github.com/helixd/helixd/integration/deployment"
)

// rows is how many samples the table shows.
const rows = 12

// report prints what was seen.
func (s *soak) report(found []error) {
	w := s.watch
	fmt.Printf("\n| at | RSS, MiB | heap, MiB | NATS block cache, MiB | goroutines | files | CPU |\n|---|---|---|---|---|---|---|\n")
	row := func(name string, x sample, cpu string) {
		fmt.Printf("| %s | %.0f | %.1f | %.1f | %.0f | %.0f | %s |\n", name, x.resident, x.heap, x.cache, x.goroutines, x.files, cpu)
	}
	row("idle before", w.before, "")
	last := sample{}
	for i, x := range w.samples {
		if i == 0 {
			last = x
		}
		if i%max(1, len(w.samples)/rows) != 0 || i == 0 {
			continue
		}
		cores := (x.spent - last.spent).Seconds() / (x.at - last.at).Seconds() / float64(runtime.NumCPU())
		row(x.at.Round(time.Second).String(), x, fmt.Sprintf("%.0f%%", 100*cores))
		last = x
	}
	row("idle after", w.after, "")
	fmt.Println()
	for _, m := range measures {
		if early, late, ok := levels(w.samples, s.span, m.of); ok {
			fmt.Printf("%s: %.1f in the first third, %.1f in the last\n", m.name, early, late)
		}
	}
	c := s.counts
	fmt.Printf("%d sessions ended and are right, with %d records; readers got %d chunks over %d connections\n", c.sessions, c.records, c.shown, c.reconnects)
	fmt.Printf("%d appends, %d runs, %d answers to calls, %d interrupts (%d of them not met within 5 s), %d chat turns (%d repeated after a slow disk), %d forks, %d erasures, %d listings and searches; %d requests were made again that the log had not answered in time\n",
		c.appends, c.runs, c.approvals, c.interrupts, c.late, c.chats, c.resyncs, c.forks, c.erased, c.listed, c.again)
	fmt.Printf("an append took %s; an interrupt %s\n", quantiles(s.appends), quantiles(s.stops))
	for _, err := range found {
		fmt.Println("NOT FLAT:", err)
	}
}

func quantiles(all deployment.Samples) string {
	if len(all) == 0 {
		return "no time: there was none"
	}
	at := func(q float64) time.Duration { return all.At(q).Round(100 * time.Microsecond) }
	return fmt.Sprintf("p50 %s, p99 %s, at most %s", at(0.5), at(0.99), at(1))
}
