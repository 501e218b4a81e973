package checker

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/integration/deployment"
	"github.com/helixd/helixd/integration/evidence"
	"github.com/helixd/helixd/projector"
)

// checkers is how many sessions are checked at once.
const checkers = 4

// Check holds all that was promised against what every node says, when all is idle. It
// returns the first promise that was not held.
func (c *Checker) Check() error {
	all := c.all()
	deployment.Say("checking %d sessions", len(all))
	var mu sync.Mutex
	var total figures
	c.each(func(_ int, l *ledger) {
		f, err := c.checkSession(l)
		if err != nil {
			c.broken(l, err)
		}
		mu.Lock()
		defer mu.Unlock()
		total.add(f)
	})
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	calls, runs := c.tools.count()
	deployment.Say("%d sessions, %d records, %d of them truncated; %d appends and %d runs acknowledged; %d claims; %d tool calls made %d times; readers got %d chunks",
		len(all), total.records, total.truncated, total.acks, total.runs, total.claims, calls, runs, total.shown)
	deployment.Say("noted: %s", c.noted())
	return nil
}

// each calls f for every session, some at a time, until a promise is broken.
func (c *Checker) each(f func(i int, l *ledger)) {
	all := c.all()
	_ = deployment.Each(len(all), checkers, func(i int) error {
		f(i, all[i])
		return c.ctx.Err()
	})
}

// figures are what was checked.
type figures struct{ records, truncated, acks, runs, claims, shown int }

func (f *figures) add(g figures) {
	f.records += g.records
	f.truncated += g.truncated
	f.acks += g.acks
	f.runs += g.runs
	f.claims += g.claims
	f.shown += g.shown
}

// checkSession checks one session idle on all nodes.
func (c *Checker) checkSession(l *ledger) (f figures, err error) {
	var raw, lines []byte
	for i, n := range c.Nodes() {
		got, err := c.say(n, "/sessions/"+l.session+"/records?dead=1")
		if deployment.Code(err) == api.CodeNotFound && !l.isCreated() {
			return f, nil
		}
		if err != nil {
			return f, fmt.Errorf("records of %s: %w", n.Name, err)
		}
		if said := evidence.Timeless(got); i == 0 {
			raw, lines = got, said
		} else if !bytes.Equal(lines, said) {
			return f, differs(lines, said, n.Name)
		}
	}
	records, err := evidence.Parse(raw)
	if err != nil {
		return f, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.promised().Hold(records); err != nil {
		return f, err
	}
	tree := projector.Fold(records...)
	for _, n := range c.Nodes() {
		state, err := c.say(n, "/sessions/"+l.session+"/state")
		if err != nil {
			return f, fmt.Errorf("state of %s: %w", n.Name, err)
		}
		if err := evidence.SameState(state, tree); err != nil {
			return f, fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	if err := c.rightEnd(l, tree); err != nil {
		return f, err
	}
	if err := c.tools.again(records); err != nil {
		return f, err
	}
	f = figures{records: len(records), acks: len(l.acks), runs: len(l.runs)}
	dead, err := evidence.DeadOf(records)
	if err != nil {
		return f, err
	}
	for _, r := range records {
		if dead.Covers(r) {
			f.truncated++
		}
		if r.Type == (*fact.RunClaimed)(nil).Type() {
			f.claims++
		}
	}
	for _, r := range l.readers {
		f.shown += len(r.Seen)
		if err := evidence.Complete(r.Seen, records, dead); err != nil {
			return f, err
		}
	}
	return f, nil
}

// say asks a node idle. Only one that is busy with something else may need
// more than one try.
func (c *Checker) say(n Node, path string) (raw []byte, err error) {
	for range 5 {
		if raw, err = c.get(n.API, path); !c.unsure(err) || !c.Sleep(time.Second) {
			break
		}
	}
	return raw, err
}

// differs names the first record of which two nodes say something else.
func differs(a, b []byte, who string) error {
	as, bs := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	for i := range min(len(as), len(bs)) {
		if !bytes.Equal(as[i], bs[i]) {
			return fmt.Errorf("node1 has %.300s where %s has %.300s", as[i], who, bs[i])
		}
	}
	return fmt.Errorf("node1 has %d records, %s has %d", len(as)-1, who, len(bs)-1)
}
