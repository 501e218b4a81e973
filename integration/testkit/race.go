//go:build race

package testkit

// Raced reports whether the race detector is on, with which computing takes many times as long.
const Raced = true
