package eventlog

import (
	"context"
	"slices"
	"time"

	"github.com/helixd/helixd/eventlog/fact"
)

// truncation collects the records that scope covers and that no marker has truncated yet.
type truncation struct {
	scope Scope
	alive []Record // in order, without their payloads
}

func (t *truncation) see(r Record) error {
	var dead Truncations
	if err := dead.Add(r); err != nil {
		return err
	}
	if len(dead) > 0 { // otherwise each record would cost a pass over all earlier ones
		t.alive = slices.DeleteFunc(t.alive, dead.Covers)
	}
	if t.scope.Truncates(r.Envelope) {
		r.Entry = Entry{Envelope: r.Envelope}
		t.alive = append(t.alive, r)
	}
	return nil
}

// ranges returns of once for each agent that has records, in the order of their first
// records, and then for each of the others.
func (t *truncation) ranges(of Range, others ...string) (ranges []Range) {
	add := func(agent string) {
		if !slices.ContainsFunc(ranges, func(g Range) bool { return g.AgentID == agent }) {
			of.AgentID = agent
			ranges = append(ranges, of)
		}
	}
	for _, r := range t.alive {
		add(r.Agent)
	}
	for _, agent := range others {
		add(agent)
	}
	return ranges
}

// mark appends the marker that propose returns for the session's head, and returns it. It
// sets the marker's AtSequence, session and time. If the marker has no ranges, mark appends
// nothing and returns nil. entries makes the entries of the append; nil: of the marker alone.
func mark(ctx context.Context, log Log, session string, o UpdateOptions, propose func(head uint64) *Truncated, entries func(*Truncated) ([]Entry, error)) (m *Truncated, err error) {
	_, err = Update(ctx, log, session, o, func(head uint64) ([]Entry, error) {
		if m = propose(head); len(m.Ranges) == 0 {
			m = nil
			return nil, nil
		}
		m.AtSequence, m.SessionID, m.Timestamp = head, session, time.Now().UnixMilli()
		if entries != nil {
			return entries(m)
		}
		return entriesOf(session, m)
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// entriesOf makes entries of facts about a session.
func entriesOf(session string, facts ...fact.Fact) ([]Entry, error) {
	entries := make([]Entry, len(facts))
	for i, f := range facts {
		var err error
		if entries[i], err = NewFact(session, f, Labels{}); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

// resetStream truncates the chunks of all agents, and makes the session's stream active.
func resetStream(ctx context.Context, log Log, session string) (*Truncated, error) {
	life, plan := lifecycle{session: session}, truncation{scope: ScopeChunks}
	see := func(r Record) error {
		if err := life.see(r); err != nil {
			return err
		}
		return plan.see(r)
	}
	return mark(ctx, log, session, UpdateOptions{
		Writer: randomID("reset:"), CatchUp: reading(log, session, 0, false, see),
	}, func(head uint64) *Truncated {
		var inactive []string
		if life.now() != StreamActive {
			inactive = []string{session}
		}
		return &Truncated{Reason: ResyncRollback, Ranges: plan.ranges(Range{From: 1, To: head, Scope: ScopeStream}, inactive...)}
	}, nil)
}
