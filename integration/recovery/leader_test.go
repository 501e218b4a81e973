package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The gap is the one around the death, though a longer one was before.
func TestGap(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(1000, 0).Add(time.Duration(ms) * time.Millisecond) }
	p := &producer{acks: []time.Time{at(0), at(900), at(910), at(1200), at(1210)}}
	require.Equal(t, 290*time.Millisecond, p.gap(at(1000)))
	require.Equal(t, 900*time.Millisecond, p.gap(at(-1)))
	require.Zero(t, p.gap(at(2000)))
	require.Equal(t, 2, p.ackedSince(at(1000)))
}
