package testkit

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Random is a source of random numbers whose seed is in the test's log, so that a failure
// can be had again.
func Random(t testing.TB) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}
