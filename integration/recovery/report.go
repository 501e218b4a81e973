package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// aim is what the first new chunk after a node's death should stay below.
const aim = 3 * time.Second

// row is what was measured of one thing.
type row struct {
	what, durability string
	took             samples
}

// report is what was measured of all.
type report struct{ rows []row }

func (r *report) add(what, durability string, took ...time.Duration) {
	r.rows = append(r.rows, row{what, durability, took})
}

// aimed is add for what has an aim. That it was missed is told, and is no failure.
func (r *report) aimed(what, durability string, took ...time.Duration) {
	r.add(what, durability, took...)
	if worst := samples(took).at(1); worst > aim {
		fmt.Fprintf(os.Stderr, "WARNING: %s: %s at worst, the aim is %s\n", what, seconds(worst), aim)
	}
}

func (r *report) write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d cores, load average %s; in seconds.\n\n", runtime.NumCPU(), loadAverage())
	fmt.Fprintf(&b, "| what | durability | samples | p50 | p99 | max |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, row := range r.rows {
		fmt.Fprintf(&b, "| %s | %s | %d | %s | %s | %s |\n", row.what, row.durability, len(row.took),
			seconds(row.took.at(0.5)), seconds(row.took.at(0.99)), seconds(row.took.at(1)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// samples are times in any order.
type samples []time.Duration

// at returns a quantile, 0 to 1. It sorts.
func (s samples) at(q float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	slices.Sort(s)
	return s[min(len(s)-1, int(q*float64(len(s))))]
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

// loadAverage is the machine's, over one, five and fifteen minutes.
func loadAverage() string {
	raw, err := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(raw))
	if err != nil || len(fields) < 3 {
		return "unknown"
	}
	return strings.Join(fields[:3], " ")
}
