package main

import (
	"slices"
	"time"
)

// samples are latencies in any order.
type samples []time.Duration

// at returns a quantile, 0 to 1. It sorts.
func (s samples) at(q float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	slices.Sort(s)
	return s[min(len(s)-1, int(q*float64(len(s))))]
}

// ms is at in milliseconds.
func (s samples) ms(q float64) float64 { return float64(s.at(q)) / 1e6 }

func merge(parts []samples) samples {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	all := make(samples, 0, n)
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}
