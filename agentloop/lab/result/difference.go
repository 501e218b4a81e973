package result

import (
	"slices"
)

// divergence is where two lanes part: the decisions of both at the same place, of which one may be
// missing.
type divergence struct {
	agent string
	index int // among the agent's decisions
	a, b  *Decision
	place int             // among all decisions, to tell which divergence is first
	keep  func(Kind) bool // which kinds the index counts
}

// kind is that of what the second lane decided, or else did not. An approval that it did not ask
// for says more than what it went on with.
func (d *divergence) kind() Kind {
	if d.a != nil && d.a.Kind == Approval {
		return Approval
	}
	if d.b != nil && (d.a == nil || d.b.Kind != ModelRequest) {
		return d.b.Kind
	}
	return d.a.Kind
}

// located is a decision with its place among all of its lane.
type located struct {
	*Decision
	place int
}

// byAgent groups decisions by their agent: agents that work at the same time may be recorded in
// any order. Agents come in the order of their first decisions.
func byAgent(decisions []Decision, keep func(Kind) bool) (agents []string, of map[string][]located) {
	of = map[string][]located{}
	for i := range decisions {
		d := &decisions[i]
		if !keep(d.Kind) {
			continue
		}
		if of[d.Agent] == nil {
			agents = append(agents, d.Agent)
		}
		of[d.Agent] = append(of[d.Agent], located{d, i})
	}
	return agents, of
}

// parts returns where the second lane first parts from the first, looking at some kinds of
// decisions; nil if it does not. A lane that ended early parts only by what it decided.
func parts(a, b Lane, keep func(Kind) bool) *divergence {
	agents, as := byAgent(a.Decisions, keep)
	others, bs := byAgent(b.Decisions, keep)
	for _, agent := range others {
		if as[agent] == nil {
			agents = append(agents, agent)
		}
	}
	var first *divergence
	for _, agent := range agents {
		d := partsAt(as[agent], bs[agent], b.Unjudged != "")
		if d != nil && (first == nil || d.place < first.place) {
			d.agent, d.keep = agent, keep
			first = d
		}
	}
	return first
}

func partsAt(a, b []located, early bool) *divergence {
	n := 0
	for n < len(a) && n < len(b) && a[n].Same(*b[n].Decision) {
		n++
	}
	d := &divergence{index: n}
	if n < len(b) {
		d.b, d.place = b[n].Decision, b[n].place
	} else if early {
		return nil
	}
	if n < len(a) {
		d.a, d.place = a[n].Decision, a[n].place
	}
	if d.a == nil && d.b == nil {
		return nil
	}
	return d
}

func isRequest(k Kind) bool   { return k == ModelRequest }
func isBehaviour(k Kind) bool { return k != ModelRequest }
func isAct(k Kind) bool {
	return k != ModelRequest && k != ModelAnswer && k != ToolResult
}

// behaviour returns where the second lane first behaves otherwise. If it is a model's answer, and
// what follows from it in the same step differs too, that says more.
func behaviour(a, b Lane) *divergence {
	d := parts(a, b, isBehaviour)
	if d == nil || d.kind() != ModelAnswer {
		return d
	}
	act := parts(a, b, isAct)
	if act == nil || act.agent != d.agent {
		return d
	}
	for side, lane := range []Lane{a, b} {
		from, to := []*Decision{d.a, d.b}[side], []*Decision{act.a, act.b}[side]
		if from != nil && to != nil && asksBetween(lane.Decisions, from, to) {
			return d
		}
	}
	return act
}

// asksBetween reports whether the agent asks a model after one decision and before another.
func asksBetween(decisions []Decision, from, to *Decision) bool {
	within := false
	for i := range decisions {
		d := &decisions[i]
		if d == to {
			return false
		}
		if within && d.Kind == ModelRequest && d.Agent == from.Agent {
			return true
		}
		within = within || d == from
	}
	return false
}

// sequence is the divergence's position in the observed log: the first lane's own, or that of what
// the lane decided before.
func (d *divergence) sequence(a Lane) uint64 {
	end := min(d.place, len(a.Decisions))
	if d.a != nil {
		if d.a.Sequence > 0 {
			return d.a.Sequence
		}
		end = slices.IndexFunc(a.Decisions, func(e Decision) bool { return e.Agent == d.a.Agent && e.Same(*d.a) })
	}
	for i := end - 1; i >= 0; i-- {
		if s := a.Decisions[i].Sequence; s > 0 {
			return s
		}
	}
	return 0
}

// at is a lane's decision at the divergence's place; nil if it has none.
func (d *divergence) at(l Lane) *Decision {
	_, of := byAgent(l.Decisions, d.keep)
	if list := of[d.agent]; d.index < len(list) {
		return list[d.index].Decision
	}
	return nil
}
