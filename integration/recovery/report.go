package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/helixd/helixd/integration/deployment"
)

// aim is what the first new chunk after a node's death should stay below.
const aim = 3 * time.Second

// row is what was measured of one thing.
type row struct {
	what, durability string
	took             deployment.Samples
}

// report is what was measured of all.
type report struct{ rows []row }

func (r *report) add(what, durability string, took ...time.Duration) {
	r.rows = append(r.rows, row{what, durability, took})
}

// aimed is add for a figure that has a target. A missed target is reported, and is no
// failure.
func (r *report) aimed(what, durability string, took ...time.Duration) {
	r.add(what, durability, took...)
	if worst := deployment.Samples(took).At(1); worst > aim {
		fmt.Fprintf(os.Stderr, "WARNING: %s: %s at worst, the aim is %s\n", what, seconds(worst), aim)
	}
}

func (r *report) write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d cores, load average %s; in seconds.\n\n", runtime.NumCPU(), deployment.LoadAverage())
	fmt.Fprintf(&b, "| what | durability | samples | p50 | p99 | max |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, row := range r.rows {
		fmt.Fprintf(&b, "| %s | %s | %d | %s | %s | %s |\n", row.what, row.durability, len(row.took),
			seconds(row.took.At(0.5)), seconds(row.took.At(0.99)), seconds(row.took.At(1)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
