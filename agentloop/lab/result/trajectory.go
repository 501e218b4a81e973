package result

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/eventlog"
)

// Trajectory is about the calls of tools and of sub-agents. A sub-agent has the name of its agent, or that
// of the tool that calls it: writer or subagent__writer.
type Trajectory struct {
	// Calls are calls that have to be made.
	Calls []CallRule `json:"calls"`
	// Order says how: "ordered", the default, in this order with others between; "exact", these and
	// no others in this order; "any", in any order with others between.
	Order string `json:"order"`
	// Never are tools and sub-agents that must not be called.
	Never []string `json:"never"`
}

// CallRule is about one call.
type CallRule struct {
	Tool string `json:"tool"`
	// Arguments are members that the call's arguments have to have; objects within them may have
	// more members too. Empty for any.
	Arguments json.RawMessage `json:"arguments"`
	// Agent is the path of the agent that has to call; "" for any.
	Agent string `json:"agent"`
}

func (t *Trajectory) check() error {
	if t == nil || slices.Contains([]string{"", "ordered", "exact", "any"}, t.Order) {
		return nil
	}
	return fmt.Errorf("must be ordered, exact or any, not %q", t.Order)
}

// checks reports whether there is anything to check. An unknown order counts: check refuses it.
func (t *Trajectory) checks() bool {
	return t != nil && (len(t.Calls) > 0 || len(t.Never) > 0 || t.Order != "" && t.Order != "ordered" && t.Order != "any")
}

// keeps returns why the calls are not those wanted.
func (t *Trajectory) keeps(decisions []Decision) error {
	if t == nil {
		return nil
	}
	var calls []Decision
	for _, d := range decisions {
		if d.Kind != ToolCall && d.Kind != SubAgent {
			continue
		}
		if slices.ContainsFunc(t.Never, func(tool string) bool { return isCall(d, tool) }) {
			return fmt.Errorf("%s was called", d.Name)
		}
		calls = append(calls, d)
	}
	rest := calls
	for i, want := range t.Calls {
		at := slices.IndexFunc(rest, want.fits)
		if at < 0 || t.Order == "exact" && at > 0 {
			return fmt.Errorf("call %d, %s, is missing; called were %s", i+1, want, names(calls))
		}
		if t.Order == "any" {
			rest = slices.Delete(slices.Clone(rest), at, at+1)
		} else {
			rest = rest[at+1:]
		}
	}
	if t.Order == "exact" && len(rest) > 0 {
		return fmt.Errorf("%s was called too", names(rest))
	}
	return nil
}

func (c CallRule) String() string {
	return strings.TrimSpace(c.Tool + " " + string(c.Arguments))
}

func (c CallRule) fits(d Decision) bool {
	if !isCall(d, c.Tool) || c.Agent != "" && c.Agent != d.Agent {
		return false
	}
	if len(c.Arguments) == 0 {
		return true
	}
	var want, have any
	return json.Unmarshal(c.Arguments, &want) == nil && json.Unmarshal(d.Content, &have) == nil && holds(have, want)
}

// isCall reports whether a decision calls a tool. The decision of a sub-agent has its agent's name, while
// configurations name its tool.
func isCall(d Decision, tool string) bool {
	return tool == d.Name || d.Kind == SubAgent && strings.TrimPrefix(tool, agentloop.SubAgentPrefix) == d.Name
}

// holds reports whether a value has all that is wanted: of objects the members, of everything else
// the same.
func holds(have, want any) bool {
	w, ok := want.(map[string]any)
	if !ok {
		return equal(have, want)
	}
	h, ok := have.(map[string]any)
	if !ok {
		return false
	}
	for name, v := range w {
		if got, ok := h[name]; !ok || !holds(got, v) {
			return false
		}
	}
	return true
}

// equal reports whether two values are the same as JSON; of numbers the value counts: 1.0 is 1.
func equal(a, b any) bool {
	x, _ := eventlog.Marshal(a)
	y, _ := eventlog.Marshal(b)
	return string(x) == string(y)
}

func names(calls []Decision) string {
	var list []string
	for _, c := range calls {
		list = append(list, c.Name)
	}
	if list == nil {
		return "none"
	}
	return strings.Join(list, ", ")
}
