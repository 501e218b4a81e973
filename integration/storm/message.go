package main

import (
	"fmt"

	"github.com/helixd/helixd/integration/deployment"
)

// What the program and a crowd say to each other: an order, then its answer,
// each a JSON object.

// order is what a crowd shall do.
type order struct {
	Do string
	// At is when what is measured has begun, in ns since 1970, of mark and cut.
	At int64

	// Of join.
	Nodes    []string // addresses, host:port
	Sessions []string // that of client i is the i-th, modulo
	First    int      // number of the crowd's first client
	Count    int

	// Last is the number of each session's last chunk, of check.
	Last []int
}

// Orders.
const (
	orderJoin   = "join"   // come, one after the other
	orderMark   = "mark"   // from now on, who is disconnected?
	orderCut    = "cut"    // all connections are cut; each client goes to its first node
	orderStatus = "status" // how is it going?
	orderTimes  = "times"  // how long did it take?
	orderCheck  = "check"  // who has not got everything?
)

// answer is what a crowd says.
type answer struct {
	Violation string // of the exactly-once order, the first one; empty: none
	Connected int
	Broken    int // have lost their connection since the mark
	Settled   int // of those, are current again
	Chunks    int // got in all, by all
	Behind    int // of check

	// Of times, in ns since the mark, of those that have lost their connection.
	Back, Current deployment.Samples
}

// add sums up what several crowds say.
func (a *answer) add(b answer) {
	if a.Violation == "" {
		a.Violation = b.Violation
	}
	a.Connected += b.Connected
	a.Broken += b.Broken
	a.Settled += b.Settled
	a.Chunks += b.Chunks
	a.Behind += b.Behind
	a.Back = append(a.Back, b.Back...)
	a.Current = append(a.Current, b.Current...)
}

// text is what the n-th chunk of a session says; sent is when, in ns since
// 1970.
func text(n int, sent int64) string { return fmt.Sprintf("%d %d ", n, sent) }
