package main

import (
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"

	"github.com/helixd/helixd/integration/deployment"
)

// report is what was measured.
type report struct {
	options
	files      uint64
	durability string

	times []timeRow
	looks []lookRow

	chunks, received, again int
}

// timeRow is how long clients took to come back.
type timeRow struct {
	what          string
	back, current deployment.Samples
}

// lookRow is what the deployment was like.
type lookRow struct {
	what      string
	seen      span
	afterward []float64 // MiB; nil: something was continuing
}

func newReport(o options, files uint64) *report { return &report{options: o, files: files} }

func (r *report) came(what string, a answer) {
	r.times = append(r.times, timeRow{what, a.Back, a.Current})
}

// maxConsumers is how many JetStream consumers there may be, whatever clients
// do: the feed of each node's read models has one a partition. Three processes
// have been nodes at the end, and a feed that broke, as on a machine that stands
// still, leaves one for a minute. One for each session would be more.
const maxConsumers = 4 * 3

// looked notes what was seen. More consumers than the nodes have is an error.
func (r *report) looked(what string, seen span, afterward []float64) error {
	r.looks = append(r.looks, lookRow{what, seen, afterward})
	if seen.looks == 0 {
		return fmt.Errorf("%s: JetStream's consumers could not be counted", what)
	}
	if seen.most > maxConsumers {
		return fmt.Errorf("violation: %s: %d JetStream consumers; all nodes together may have %d", what, seen.most, maxConsumers)
	}
	return nil
}

func (r *report) write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d SSE clients in %d processes on %d sessions of two nodes, a chunk each %s a session; one NATS server, R1, durability %s.\n",
		r.clients, r.crowds, r.sessions, r.every, r.durability)
	fmt.Fprintf(&b, "%d cores, load average %s; up to %d open files a process.\n\n", runtime.NumCPU(), deployment.LoadAverage(), r.files)
	b.WriteString("| what | clients | connected again: p50 | p99 | all | current again: p50 | p99 | all |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, t := range r.times {
		fmt.Fprintf(&b, "| %s | %d |", t.what, len(t.back))
		for _, all := range []deployment.Samples{t.back, t.current} {
			for _, q := range []float64{0.5, 0.99, 1} {
				fmt.Fprintf(&b, " %.2f s |", all.At(q).Seconds())
			}
		}
		b.WriteByte('\n')
	}
	b.WriteString("\n| when | node 1: RSS, MiB | node 2 | NATS server | CPU of each meanwhile, s | JetStream consumers |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, l := range r.looks {
		fmt.Fprintf(&b, "| %s |", l.what)
		for i := range l.seen.peak {
			switch {
			case l.afterward == nil && l.seen.peak[i] == 0: // it was dead
				b.WriteString(" – |")
			case l.afterward == nil:
				fmt.Fprintf(&b, " at most %.0f |", l.seen.peak[i])
			case math.IsNaN(l.afterward[i]):
				b.WriteString(" – |")
			default:
				fmt.Fprintf(&b, " %.0f |", l.afterward[i])
			}
		}
		for i, spent := range l.seen.spent {
			fmt.Fprintf(&b, "%s%.1f", [...]string{" ", ", "}[min(i, 1)], spent.Seconds())
		}
		fmt.Fprintf(&b, " of %.0f |", l.seen.took.Seconds())
		if l.seen.least == l.seen.most {
			fmt.Fprintf(&b, " %d |\n", l.seen.most)
		} else {
			fmt.Fprintf(&b, " %d to %d |\n", l.seen.least, l.seen.most)
		}
	}
	if r.received > 0 {
		fmt.Fprintf(&b, "\nEvery client got every chunk of its session once and in order: %d chunks were appended, and received %d times. %d appends were made again.\n",
			r.chunks, r.received, r.again)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
