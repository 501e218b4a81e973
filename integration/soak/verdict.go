//go:build unix

package main

import (
	"fmt"
	"slices"
	"time"
)

// leak is a level that rises.
type leak struct{ what string }

func (l *leak) Error() string { return l.what }

// measure is one thing of a sample that is judged. A level may be higher than an
// earlier one by a share of that, or by so much, whichever is more; by shortRun
// times that in a run in which it has not settled.
type measure struct {
	name  string
	of    func(sample) float64
	share float64
	some  float64
	// idle is how much higher it may be after the load than before it; the log
	// has grown meanwhile. Negative: not judged, the Go runtime keeps memory.
	idle float64
	// least is the shortest run in which it is judged: what fills up slowly
	// rises in a shorter one.
	least time.Duration
}

// settles is how long it takes until the garbage between two collections, and
// NATS's caches, with theirs, are as large as they get.
const settles = 10 * time.Minute

// shortRun is how much more a level may rise in a run shorter than settles. Its
// thirds are half a minute long, and how many sessions of which kind are in which
// stage then differs from one to the next. One thing kept of each session still
// shows: three hundred of them end from the first third to the last of three
// minutes. One kept of fewer shows when the daemon is idle again, which is judged
// in every run alike.
const shortRun = 3

var measures = []measure{
	{"heap, MiB", func(x sample) float64 { return x.heap }, 0.2, 12, 32, 0},
	{"memory (RSS), MiB", func(x sample) float64 { return x.resident - x.cache }, 0.25, 48, -1, settles},
	{"goroutines", func(x sample) float64 { return x.goroutines }, 0.1, 60, 25, 0},
	{"open files", func(x sample) float64 { return x.files }, 0.1, 40, 25, 0},
}

// warmUp is how long it takes until sessions of all ages are under way: they last
// a minute or two.
func warmUp(span time.Duration) time.Duration { return max(span/6, min(90*time.Second, span/2)) }

// levels are those of the first and of the last third of the samples after the
// warm-up: their lower quartiles, for what is kept is there in every sample, and
// what is under way makes peaks.
func levels(samples []sample, span time.Duration, of func(sample) float64) (early, late float64, ok bool) {
	warm := warmUp(span)
	third := (span - warm) / 3
	var first, last []float64
	for _, x := range samples {
		switch {
		case x.at >= warm && x.at < warm+third:
			first = append(first, of(x))
		case x.at >= span-third && x.at <= span:
			last = append(last, of(x))
		}
	}
	if len(first) == 0 || len(last) == 0 {
		return 0, 0, false
	}
	return lowerQuartile(first), lowerQuartile(last), true
}

func lowerQuartile(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/4]
}

// flat returns what rises under load that does not.
func flat(samples []sample, span time.Duration) (found []error) {
	for _, m := range measures {
		if span < m.least {
			continue
		}
		early, late, ok := levels(samples, span, m.of)
		more := max(m.share*early, m.some)
		if span < settles {
			more *= shortRun
		}
		switch {
		case !ok:
			found = append(found, fmt.Errorf("%s: too few samples", m.name))
		case late > early+more:
			found = append(found, &leak{fmt.Sprintf("%s rises under a load that does not: %.0f, then %.0f", m.name, early, late)})
		}
	}
	return found
}

// backAt returns what is higher than before, when nothing is under way any more.
func backAt(before, after sample) (found []error) {
	for _, m := range measures {
		if a, b := m.of(before), m.of(after); m.idle >= 0 && b > a+m.idle {
			found = append(found, &leak{fmt.Sprintf("%s does not come back: %.0f before the load, %.0f after it", m.name, a, b)})
		}
	}
	return found
}

func (w *watch) judge(span time.Duration) []error {
	return append(flat(w.samples, span), backAt(w.before, w.after)...)
}
