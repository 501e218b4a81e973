package result

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAssertions(t *testing.T) {
	l := script(`tool-call search {"q":"x","page":{"n":1,"size":10}}`, `sub-agent helper {"task":"y"}`, `/helper> tool-call fetch {"id":2}`, `output - {"order":{"id":"A1","total":12.0},"lines":[{"n":1},{"n":2}]}`)
	l.Tokens, l.Cost, l.Steps, l.Latency = Tokens{Input: 900, Output: 100}, 0.25, 3, 2*time.Second
	for _, c := range []struct {
		name string
		a    Assertion
		want string // of the message; "" if it holds
	}{
		{"outcome", Assertion{Outcome: "completed"}, ""},
		{"other outcome", Assertion{Outcome: "failed"}, "the outcome is completed, not failed"},
		{"contains", Assertion{Contains: []string{"A1", "order"}}, ""},
		{"contains not", Assertion{Contains: []string{"A2"}}, `the output does not contain "A2"`},
		{"excludes", Assertion{Excludes: []string{"sorry"}}, ""},
		{"excludes not", Assertion{Excludes: []string{"A1"}}, `the output contains "A1"`},
		{"matches", Assertion{Matches: `A\d`}, ""},
		{"matches not", Assertion{Matches: `^B`}, `the output does not match ^B`},
		{"schema", Assertion{Schema: json.RawMessage(`{"type":"object","required":["order"]}`)}, ""},
		{"schema not", Assertion{Schema: json.RawMessage(`{"type":"object","required":["price"]}`)}, `the output does not fit its schema: `},
		{"path", Assertion{Paths: []PathRule{{Path: "$.lines[*].n"}}}, ""},
		{"path equals", Assertion{Paths: []PathRule{{Path: "$.order.total", Equals: json.RawMessage(`12`)}}}, ""},
		{"path equals not", Assertion{Paths: []PathRule{{Path: "$.lines[*].n", Equals: json.RawMessage(`1`)}}}, "$.lines[*].n is 2, not 1"},
		{"path selects nothing", Assertion{Paths: []PathRule{{Path: "$.price"}}}, "$.price selects nothing in the output"},
		{"ordered", Assertion{Trajectory: &Trajectory{Calls: []CallRule{{Tool: "search"}, {Tool: "fetch"}}}}, ""},
		{"ordered not", Assertion{Trajectory: &Trajectory{Calls: []CallRule{{Tool: "fetch"}, {Tool: "search"}}}}, "call 2, search, is missing; called were search, helper, fetch"},
		{"any order", Assertion{Trajectory: &Trajectory{Order: "any", Calls: []CallRule{{Tool: "fetch"}, {Tool: "search"}}}}, ""},
		{"any twice", Assertion{Trajectory: &Trajectory{Order: "any", Calls: []CallRule{{Tool: "fetch"}, {Tool: "fetch"}}}}, "call 2, fetch, is missing; called were search, helper, fetch"},
		{"exact", Assertion{Trajectory: &Trajectory{Order: "exact", Calls: []CallRule{{Tool: "search"}, {Tool: "helper"}, {Tool: "fetch"}}}}, ""},
		{"exact not", Assertion{Trajectory: &Trajectory{Order: "exact", Calls: []CallRule{{Tool: "search"}, {Tool: "helper"}}}}, "fetch was called too"},
		{"arguments", Assertion{Trajectory: &Trajectory{Calls: []CallRule{{Tool: "search", Arguments: json.RawMessage(`{"page":{"n":1}}`)}}}}, ""},
		{"arguments not", Assertion{Trajectory: &Trajectory{Calls: []CallRule{{Tool: "search", Arguments: json.RawMessage(`{"page":{"n":2}}`)}}}}, `call 1, search {"page":{"n":2}}, is missing; called were search, helper, fetch`},
		{"agent", Assertion{Trajectory: &Trajectory{Calls: []CallRule{{Tool: "fetch", Agent: "/helper"}}}}, ""},
		{"never", Assertion{Trajectory: &Trajectory{Never: []string{"delete"}}}, ""},
		{"never not", Assertion{Trajectory: &Trajectory{Never: []string{"fetch"}}}, "fetch was called"},
		{"never a sub-agent", Assertion{Trajectory: &Trajectory{Never: []string{"helper"}}}, "helper was called"},
		{"never a sub-agent's tool", Assertion{Trajectory: &Trajectory{Never: []string{"subagent__helper"}}}, "helper was called"},
		{"never a sub-agent with a tool's name", Assertion{Trajectory: &Trajectory{Never: []string{"subagent__fetch"}}}, ""},
		{"a sub-agent's tool", Assertion{Trajectory: &Trajectory{Calls: []CallRule{{Tool: "subagent__helper", Arguments: json.RawMessage(`{"task":"y"}`)}}}}, ""},
		{"no calls", Assertion{Trajectory: &Trajectory{Order: "exact"}}, "search, helper, fetch was called too"},
		{"budget", Assertion{Budget: &Budget{Cost: 0.25, Tokens: 1000, Steps: 3, Calls: 3, Seconds: 2}}, ""},
		{"budget not", Assertion{Budget: &Budget{Cost: 0.2, Tokens: 999, Steps: 2, Calls: 2, Seconds: 1}}, "cost: 0.25, over the budget of 0.2; tokens: 1000, over the budget of 999; steps: 3, over the budget of 2; calls: 3, over the budget of 2; seconds: 2, over the budget of 1"},
		{"function", Assertion{Func: func(_, agent string, _ Lane) error { return errors.New("not " + agent) }}, "not shop"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := NewSuite([]Assertion{c.a})
			require.NoError(t, err)
			got := s.Check("s1", "shop", l)
			require.Len(t, got, 1)
			require.NotEmpty(t, got[0].Name)
			require.Equal(t, c.want == "", got[0].Pass)
			require.Contains(t, got[0].Message, c.want)
			if c.name != "schema not" {
				require.Equal(t, c.want, got[0].Message)
			}
		})
	}
}

func TestAssertionsAreAboutTheirSessions(t *testing.T) {
	s, err := NewSuite([]Assertion{{Agent: "shop", Outcome: "failed"}, {Sessions: []string{"s2"}, Outcome: "failed"}})
	require.NoError(t, err)
	require.Len(t, s.Check("s1", "shop", Lane{}), 1)
	require.Len(t, s.Check("s2", "shop", Lane{}), 2)
	require.Empty(t, s.Check("s1", "other", Lane{}))
	require.Empty(t, (*Suite)(nil).Check("s1", "shop", Lane{}))
}

func TestAssertionsThatCannotBeUsed(t *testing.T) {
	_, err := NewSuite([]Assertion{
		{}, {Matches: "("}, {Schema: json.RawMessage(`{"type":3}`)}, {Paths: []PathRule{{Path: "$.a"}, {Path: "a["}}},
		{Trajectory: &Trajectory{Order: "some"}}, {Trajectory: &Trajectory{}}, {Trajectory: &Trajectory{Order: "any"}}, {Budget: &Budget{}},
		{Budget: &Budget{Cost: -1, Tokens: -1, Steps: -1, Calls: -1, Seconds: -1}},
	})
	require.Error(t, err)
	var fields []string
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		f, ok := errors.AsType[*FieldError](e)
		require.True(t, ok)
		fields = append(fields, f.Error()[:len("assert[0].")]+f.Field)
	}
	require.Equal(t, []string{
		"assert[0].name", "assert[1].matches", "assert[2].schema", "assert[3].paths[1].path",
		"assert[4].trajectory.order", "assert[5].name", "assert[6].name", "assert[7].name",
		"assert[8].budget.cost", "assert[8].budget.tokens", "assert[8].budget.steps", "assert[8].budget.calls", "assert[8].budget.seconds",
	}, fields)
}
