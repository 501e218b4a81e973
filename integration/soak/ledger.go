//go:build unix

package main

import (
	"sync/atomic"

	"github.com/helixd/helixd/integration/evidence"
)

// ledger is what a session was promised, and who reads it. It is the goroutine's
// that plays the session.
type ledger struct {
	session  string
	created  atomic.Bool // an answer says that it is there
	acks     []evidence.Ack
	runs     []string
	accepted []string
	written  map[string]bool // empty, if it is written from outside
	readers  []*reader
}

func (l *ledger) create() { l.created.Store(true) }

func (l *ledger) promises() evidence.Promises {
	return evidence.Promises{Session: l.session, Acks: l.acks, Runs: l.runs, Accepted: l.accepted, Written: l.written}
}

// kept is a session that has ended and was found right: so it has to stay.
type kept struct {
	session string
	hash    uint64 // of its records; 0: it was erased
}
