// Package snapshot answers with the state of a session at an exact sequence.
//
// Everything here is fold(records <= n) for a stated n: a [Snapshot]'s
// messages and state are exactly what its StreamSequence covers, so that a
// client which follows from there misses nothing and gets nothing twice.
package snapshot
