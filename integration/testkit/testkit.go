// Package testkit says how many of a package's tests run at the same time, and what only
// CI does in full; it finds texts in a server's files, keeps what is logged, and issues certificates.
package testkit

import (
	"flag"
	"iter"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"testing"
)

// AtOnce lets n parallel tests of a package run at the same time, also on a machine with
// fewer processors: tests that mostly wait, for a disk, an election or a process. A TestMain
// calls it. The flag -parallel goes before.
func AtOnce(n int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return
	}
	if err := flag.Set("test.parallel", strconv.Itoa(max(n, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
}

// InFull reports whether HELIX_FULL is set, as CI has it: then nothing is left out or cut down,
// also in a short run.
func InFull() bool { return os.Getenv("HELIX_FULL") != "" }

// Slow leaves a test that takes more than a second out of a short run. With the race
// detector it runs: it may have many goroutines.
func Slow(t testing.TB) {
	t.Helper()
	if !Raced {
		Sequential(t)
	}
}

// Sequential leaves a test that takes more than a second in one goroutine out of a short
// run. With the race detector it would take long and show nothing.
func Sequential(t testing.TB) {
	t.Helper()
	if testing.Short() && !InFull() {
		t.Skip("it takes more than a second: not in a short run, unless HELIX_FULL is set")
	}
}

// OneGoroutine leaves a test out of a short run with the race detector: it would take long and show
// nothing.
func OneGoroutine(t testing.TB) {
	t.Helper()
	if Raced && testing.Short() && !InFull() {
		t.Skip("it has one goroutine: not in a short run with the race detector")
	}
}

// Long leaves a test out that takes more than five seconds beside others, unless HELIX_FULL is
// set or the race detector watches, so that go test ./... takes less than three minutes.
func Long(t testing.TB) {
	t.Helper()
	if !InFull() && !Raced {
		t.Skip("it takes more than five seconds: only with HELIX_FULL, or with the race detector")
	}
}

// Full leaves a test out unless HELIX_FULL is set: one that repeats, on a slower deployment,
// what others show.
func Full(t testing.TB) {
	t.Helper()
	if !InFull() {
		t.Skip("only with HELIX_FULL")
	}
}

// Positions yields the positions 0, 1, 2, ... at which a test disturbs what it tests: all of
// them if HELIX_FULL is set, otherwise one in n, from a random one of the first n.
func Positions(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		at, step := rand.IntN(n), n
		if InFull() {
			at, step = 0, 1
		}
		for yield(at) {
			at += step
		}
	}
}

// Times is how often a test repeats what it does with random input: n times if HELIX_FULL
// is set, otherwise a tenth of that.
func Times(n int) int {
	if InFull() {
		return n
	}
	return max(1, n/10)
}

// Count is the number in an environment variable, or n if it is not set.
func Count(t testing.TB, variable string, n int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return n
	}
	count, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return count
}

// With leaves a test out unless an environment variable is set, as a target of the Makefile
// sets it, which installs what the test needs.
func With(t testing.TB, variable, target string) {
	t.Helper()
	if os.Getenv(variable) == "" {
		t.Skipf("set %s=1, as `make %s` does", variable, target)
	}
}

// Cluster leaves a test of several servers out of a short run.
func Cluster(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("a short run starts no clusters")
	}
}
