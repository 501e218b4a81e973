//go:build unix

package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A seed says what is broken, when, where and for how long; within the time
// every kind is.
func TestPlanFollowsTheSeed(t *testing.T) {
	o := options{seed: 1, nodes: 3, span: 2 * time.Minute, faults: kinds}
	require.Equal(t, plan(o), plan(o))
	other := o
	other.seed = 2
	require.NotEqual(t, plan(o), plan(other))
	for seed := range uint64(100) {
		o.seed = seed
		broken := map[string]bool{}
		last := time.Duration(0)
		for _, f := range plan(o) {
			broken[f.kind] = true
			require.GreaterOrEqual(t, f.at, last)
			require.LessOrEqual(t, f.at+f.lasts, o.span)
			require.NotEqual(t, f.node, f.other, fmt.Sprint(f))
			last = f.at
		}
		require.Len(t, broken, len(kinds), "seed %d", seed)
	}
}
