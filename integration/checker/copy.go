package checker

import (
	"bytes"
	"context"
	"fmt"

	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/integration/deployment"
	"github.com/helixd/helixd/integration/evidence"
)

// Promised is what clients had been promised at a moment.
type Promised struct {
	c        *Checker
	promises map[*ledger]evidence.Promises
}

// Promised returns what clients have been promised so far.
func (c *Checker) Promised() Promised {
	p := Promised{c, map[*ledger]evidence.Promises{}}
	for _, l := range c.all() {
		l.update(func() {
			if l.created {
				p.promises[l] = l.promised()
			}
		})
	}
	return p
}

// Sessions is how many sessions there were.
func (p Promised) Sessions() int { return len(p.promises) }

// In checks a deployment that has a copy of the log of that moment or a later one, such as a
// restored backup: all that was promised is there, and each record but the last one, which
// says that the session was restored, is as in the log that was copied.
func (p Promised) In(ctx context.Context, at *client.Client) error {
	for l, promised := range p.promises {
		if err := p.c.sameIn(ctx, at, l, promised); err != nil {
			return fmt.Errorf("%s: %w", l.session, err)
		}
	}
	return nil
}

func (c *Checker) sameIn(ctx context.Context, at *client.Client, l *ledger, promised evidence.Promises) error {
	path := "/sessions/" + l.session + "/records?dead=1"
	raw, err := deployment.Get(ctx, at, path)
	if err != nil {
		return err
	}
	records, err := evidence.Parse(raw)
	if err != nil {
		return err
	}
	if promised.Written != nil { // what came later may be there
		promised.Written = l.written()
	}
	if err := promised.Hold(records); err != nil {
		return err
	}
	source, err := c.say(c.node(0), path)
	if err != nil {
		return err
	}
	if len(records) == 0 || records[len(records)-1].Type != (*fact.SessionImported)(nil).Type() {
		return evidence.Wrong(nil, "it does not say that it was restored")
	}
	was := evidence.Timeless(raw)
	was = was[:bytes.LastIndexByte(bytes.TrimSuffix(was, []byte("\n")), '\n')+1]
	if now := evidence.Timeless(source); !bytes.HasPrefix(now, was) {
		return differs(now, was, "the copy")
	}
	return nil
}
