package checker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/integration/deployment"
	"github.com/helixd/helixd/integration/evidence"
	"github.com/helixd/helixd/projector"
)

// audited is what an audit has seen of a session: it stays the beginning of
// all that comes, unless the power fails.
type audited struct {
	power   int64
	records []evidence.Shown
}

// audit checks sessions while things are broken, until stop is closed.
func (c *Checker) audit(stop <-chan struct{}) {
	r := c.random("audit", 0)
	for {
		select {
		case <-stop:
			return
		default:
		}
		if !c.Sleep(100 * time.Millisecond) {
			return
		}
		if all := c.all(); len(all) > 0 && !c.look(r, all[r.IntN(len(all))]) {
			return
		}
	}
}

// Audit looks at every session as it is now: what was acknowledged is there, once and in its
// order, what was read before is still the beginning, and the state is the fold. It returns the
// first promise that was not held.
func (c *Checker) Audit() error {
	c.each(func(i int, l *ledger) { c.look(c.random("audit of "+l.session, i), l) })
	return context.Cause(c.ctx)
}

// look checks a session, and reports whether all was well.
func (c *Checker) look(r *rand.Rand, l *ledger) bool {
	err := c.auditSession(r, l)
	if err != nil {
		c.Note("an answer that was wrong for a moment", "%s: %v", l.session, err)
	}
	for again := 1; err != nil; again++ {
		if again > moment { // a read after another node's is no loss, and a loss stays
			c.broken(l, fmt.Errorf("in an audit: %w", err))
			return false
		}
		if !c.Sleep(time.Second) {
			return false
		}
		err = c.auditSession(r, l)
	}
	return true
}

// moment is how often a session may be wrong in a row, a second after the other.
const moment = 10

// auditSession compares what one node says of a session, and the state that
// another one says, with what had been promised before.
func (c *Checker) auditSession(r *rand.Rand, l *ledger) error {
	l.mu.Lock()
	before, created, last := l.promised(), l.created, l.audited
	l.mu.Unlock()
	power := c.power.Load()
	raw, err := c.get(c.anyNode(r), "/sessions/"+l.session+"/records?dead=1")
	switch {
	case power != c.power.Load(), c.unsure(err), deployment.Code(err) == api.CodeNotFound && !created:
		return nil
	case err != nil:
		return fmt.Errorf("records: %w", err)
	}
	records, err := evidence.Parse(raw)
	if err == nil && len(records) == 0 {
		err = errors.New("there are none")
	}
	if err != nil {
		return fmt.Errorf("records: %w", err)
	}
	if before.Written != nil { // meanwhile it has gone on
		before.Written = l.written()
	}
	if err := before.Hold(records); err != nil {
		return err
	}
	head := records[len(records)-1].Sequence
	var seen []evidence.Shown
	for line := range bytes.Lines(evidence.Timeless(raw)) {
		seen = append(seen, evidence.Shown{Sequence: records[len(seen)].Sequence, Hash: evidence.Hash(line)})
	}
	if last.power == power {
		for i, old := range last.records {
			if i >= len(seen) || seen[i] != old {
				return evidence.Wrong([]uint64{old.Sequence}, "record %d is not that of an earlier look: %s", old.Sequence, line(raw, i))
			}
		}
	}
	if len(seen) > len(last.records) || last.power != power {
		l.update(func() { l.audited = audited{power, seen} })
	}
	at := c.node(r.Int())
	state, err := c.get(at.Clients, fmt.Sprintf("/sessions/%s/state?at=%d", l.session, head))
	switch {
	case power != c.power.Load(), c.unsure(err):
		return nil
	case err != nil:
		return fmt.Errorf("state at %d: %w", head, err)
	}
	if at.Earlier {
		return evidence.KnownState(state, projector.Fold(records...))
	}
	return evidence.SameState(state, projector.Fold(records...))
}

// line returns the line i of a text, if there is one.
func line(text []byte, i int) []byte {
	for l := range bytes.Lines(text) {
		if i == 0 {
			return l
		}
		i--
	}
	return nil
}
