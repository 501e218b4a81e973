// Package snapshot computes the state of a session at an exact sequence.
//
// Everything here is fold(records <= n) for a stated n: a [Snapshot] has exactly the
// messages and state of the records up to its StreamSequence. A client that follows the
// session from there misses nothing and receives nothing twice.
package snapshot
