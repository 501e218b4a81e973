package result

import "slices"

// Acts are the calls and approvals in which a candidate differs from the baseline, each by the
// tool's name, once a call, ordered.
type Acts struct {
	// Arguments are calls that were made with other arguments.
	Arguments []string `json:"arguments,omitempty"`
	// CallsAdded and CallsMissing are calls that one side made more often.
	CallsAdded   []string `json:"callsAdded,omitempty"`
	CallsMissing []string `json:"callsMissing,omitempty"`
	// ApprovalsAdded were asked for by the candidate alone, ApprovalsAvoided by the baseline alone.
	ApprovalsAdded   []string `json:"approvalsAdded,omitempty"`
	ApprovalsAvoided []string `json:"approvalsAvoided,omitempty"`
}

// actsOf compares the calls and approvals of two lanes. What a lane that ended early did not do is
// not missing.
func actsOf(a, b Lane) Acts {
	var acts Acts
	early := b.Unjudged != ""
	calls := func(k Kind) bool { return k == ToolCall || k == SubAgent }
	for name, both := range onlyIn(a, b, calls) {
		n := min(len(both[0]), len(both[1]))
		acts.Arguments = append(acts.Arguments, slices.Repeat([]string{name}, n)...)
		acts.CallsAdded = append(acts.CallsAdded, slices.Repeat([]string{name}, len(both[1])-n)...)
		if !early {
			acts.CallsMissing = append(acts.CallsMissing, slices.Repeat([]string{name}, len(both[0])-n)...)
		}
	}
	for name, both := range onlyIn(a, b, func(k Kind) bool { return k == Approval }) {
		n := min(len(both[0]), len(both[1])) // of another call of the tool: neither added nor avoided
		acts.ApprovalsAdded = append(acts.ApprovalsAdded, slices.Repeat([]string{name}, len(both[1])-n)...)
		if !early {
			acts.ApprovalsAvoided = append(acts.ApprovalsAvoided, slices.Repeat([]string{name}, len(both[0])-n)...)
		}
	}
	for _, list := range []*[]string{&acts.Arguments, &acts.CallsAdded, &acts.CallsMissing, &acts.ApprovalsAdded, &acts.ApprovalsAvoided} {
		slices.Sort(*list)
	}
	return acts
}

// onlyIn returns by name what only the first lane did and what only the second one did.
func onlyIn(a, b Lane, keep func(Kind) bool) map[string][2][]Decision {
	rest := map[string][2][]Decision{}
	for _, d := range a.Decisions {
		if keep(d.Kind) {
			both := rest[d.Name]
			both[0] = append(both[0], d)
			rest[d.Name] = both
		}
	}
	for _, d := range b.Decisions {
		if !keep(d.Kind) {
			continue
		}
		both := rest[d.Name]
		if i := slices.IndexFunc(both[0], d.Same); i >= 0 {
			both[0] = slices.Delete(both[0], i, i+1)
		} else {
			both[1] = append(both[1], d)
		}
		rest[d.Name] = both
	}
	return rest
}
