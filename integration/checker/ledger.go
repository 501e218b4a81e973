package checker

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/helixd/helixd/integration/evidence"
)

// ledger is what a session was promised: the answers to requests, and
// the chunks that readers got.
type ledger struct {
	session string
	agent   string // empty: outside producers write it

	mu       sync.Mutex
	created  bool // an answer says that it is there
	acks     []evidence.Ack
	unsure   map[string]bool // texts that were sent without an answer so far
	runs     []string        // that were acknowledged as begun
	accepted []string        // calls whose answer was accepted
	stopped  bool            // it was interrupted
	ended    bool            // a client got its end
	readers  []*reader
	audited  audited
	doing    string // what it waits for, to be reported if that lasts
}

// promised returns what was acknowledged so far. l.mu is held.
func (l *ledger) promised() evidence.Promises {
	p := evidence.Promises{Session: l.session, Acks: l.acks, Runs: l.runs, Accepted: l.accepted}
	if l.agent == "" {
		p.Written = maps.Clone(l.unsure)
	}
	return p
}

// written returns all texts that producers have sent so far.
func (l *ledger) written() map[string]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := maps.Clone(l.unsure)
	for _, done := range l.acks {
		for _, text := range done.Texts {
			all[text] = true
		}
	}
	return all
}

// ledger returns the session's, a new one if there is none.
func (c *Checker) ledger(session, agent string) *ledger {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.ledgers[session]
	if l == nil {
		l = &ledger{session: session, agent: agent, unsure: map[string]bool{}}
		c.ledgers[session] = l
	}
	return l
}

// all returns all ledgers, by session.
func (c *Checker) all() []*ledger {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*ledger
	for _, l := range c.ledgers {
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b *ledger) int { return strings.Compare(a.session, b.session) })
	return all
}

func (l *ledger) update(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

// does notes what the session waits for; empty: nothing.
func (l *ledger) does(format string, args ...any) {
	l.update(func() { l.doing = fmt.Sprintf(format, args...) })
}

func (l *ledger) isCreated() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.created
}

// waiting reports the sessions that are not finished.
func (c *Checker) waiting() string {
	var out []string
	for _, l := range c.all() {
		l.mu.Lock()
		if l.doing != "" {
			out = append(out, l.session+" "+l.doing)
		}
		l.mu.Unlock()
	}
	if len(out) > 10 {
		out = append(out[:10], fmt.Sprintf("and %d more", len(out)-10))
	}
	return strings.Join(out, "; ")
}
