package eventlog

import (
	"context"
	"slices"
	"time"

	"github.com/helixd/helixd/eventlog/fact"
)

// resetting collects whose chunks a reset has to truncate.
type resetting struct {
	session string
	life    lifecycle
	alive   []Record // chunks, without their payloads
	marker  *Truncated
}

func resetStream(ctx context.Context, log Log, session string) (*Truncated, error) {
	plan := &resetting{session: session, life: lifecycle{session: session}}
	_, err := Update(ctx, log, session, UpdateOptions{
		Writer: randomID("reset:"), CatchUp: reading(log, session, 0, false, plan.see),
	}, func(head uint64) ([]Entry, error) {
		plan.marker = nil
		ranges := plan.ranges(head)
		if len(ranges) == 0 {
			return nil, nil
		}
		plan.marker = &Truncated{
			Reason: ResyncRollback, Ranges: ranges, AtSequence: head,
			Base: fact.Base{SessionID: session, Timestamp: time.Now().UnixMilli()},
		}
		return entriesOf(session, plan.marker)
	})
	if err != nil {
		return nil, err
	}
	return plan.marker, nil
}

func (p *resetting) see(r Record) error {
	if err := p.life.see(r); err != nil {
		return err
	}
	var dead Truncations
	if err := dead.Add(r); err != nil {
		return err
	}
	if len(dead) > 0 {
		p.alive = slices.DeleteFunc(p.alive, dead.Covers)
	}
	if r.Kind == KindChunk {
		r.Entry = Entry{Envelope: r.Envelope}
		p.alive = append(p.alive, r)
	}
	return nil
}

// ranges returns one range for each agent that has chunks, and for the session
// itself if its stream is not active.
func (p *resetting) ranges(head uint64) (ranges []Range) {
	add := func(agent string) {
		if !slices.ContainsFunc(ranges, func(g Range) bool { return g.AgentID == agent }) {
			ranges = append(ranges, Range{AgentID: agent, From: 1, To: head, Scope: ScopeStream})
		}
	}
	for _, r := range p.alive {
		add(r.Agent)
	}
	if p.life.now() != StreamActive {
		add(p.session)
	}
	return ranges
}
