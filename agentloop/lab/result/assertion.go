package result

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/theory/jsonpath"
)

// Assertion is a rule that every candidate lane has to keep, whatever the baseline does. Each of its
// members that is set is checked.
type Assertion struct {
	// Name is shown if it fails; "" for what it checks.
	Name string `json:"name"`
	// Agent limits it to the sessions of one agent, Sessions to some sessions; empty for all.
	Agent    string   `json:"agent"`
	Sessions []string `json:"sessions"`

	// Outcome is the status with which the last run has to end, one of [Outcomes].
	Outcome string `json:"outcome"`
	// Contains are texts that the output has to hold, Excludes those that it must not hold.
	Contains []string `json:"contains"`
	Excludes []string `json:"excludes"`
	// Matches is a regular expression (RE2) that has to match somewhere in the output.
	Matches string `json:"matches"`
	// Schema is a JSON Schema of the output, which then has to be JSON.
	Schema json.RawMessage `json:"schema"`
	// Paths are about values in the output, which then has to be JSON.
	Paths []PathRule `json:"paths"`
	// Trajectory is about the tools and sub-agents that were called.
	Trajectory *Trajectory `json:"trajectory"`
	// Budget bounds what a session may take.
	Budget *Budget `json:"budget"`

	// Func is a rule in Go; an error says why the lane does not keep it.
	Func func(session, agent string, lane Lane) error `json:"-"`
}

// Outcomes are how the last run of a lane may end.
var Outcomes = []string{"completed", "failed", "interrupted", "paused"}

// PathRule is about the values that an RFC 9535 JSONPath selects. Without Equals, it has to select
// at least one.
type PathRule struct {
	Path string `json:"path"`
	// Equals is the JSON that every selected value has to equal, of which there is at least one.
	Equals json.RawMessage `json:"equals"`
}

// Budget bounds what a session may take; 0 is no bound. [NewSuite] refuses negative bounds.
type Budget struct {
	Cost    float64 `json:"cost"` // in the currency of the prices
	Tokens  int     `json:"tokens"`
	Steps   int     `json:"steps"`
	Calls   int     `json:"calls"`   // of tools and sub-agents
	Seconds float64 `json:"seconds"` // of models
}

// Check is what an assertion found in a lane.
type Check struct {
	Name string `json:"name"`
	Pass bool   `json:"pass"`
	// Message says what is wrong; "" if nothing.
	Message string `json:"message,omitempty"`
}

// Suite are assertions that are ready to be checked. The zero value has none.
type Suite struct{ rules []rule }

type rule struct {
	Assertion
	matches *regexp.Regexp
	schema  *jsonschema.Resolved
	paths   []*jsonpath.Path
}

// A FieldError is about one field of an assertion.
type FieldError struct {
	Index int    // of the assertion
	Field string // such as "paths[0].path"
	Err   error
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("assert[%d].%s: %v", e.Index, e.Field, e.Err)
}
func (e *FieldError) Unwrap() error { return e.Err }

// NewSuite checks assertions. Its error joins a [FieldError] for each that can't be used.
func NewSuite(assertions []Assertion) (*Suite, error) {
	s := &Suite{}
	var errs []error
	for i, a := range assertions {
		r := rule{Assertion: a}
		fail := func(field string, err error) {
			if err != nil {
				errs = append(errs, &FieldError{i, field, err})
			}
		}
		if a.Outcome != "" && !slices.Contains(Outcomes, a.Outcome) {
			fail("outcome", errors.New("must be one of "+strings.Join(Outcomes, ", ")))
		}
		var err error
		if a.Matches != "" {
			r.matches, err = regexp.Compile(a.Matches)
			fail("matches", err)
		}
		if len(a.Schema) > 0 {
			r.schema, err = resolve(a.Schema)
			fail("schema", err)
		}
		for j, p := range a.Paths {
			path, err := jsonpath.Parse(p.Path)
			fail(fmt.Sprintf("paths[%d].path", j), err)
			r.paths = append(r.paths, path)
		}
		fail("trajectory.order", a.Trajectory.check())
		a.Budget.check(fail)
		checked := r.describe()
		r.Name = cmp.Or(r.Name, checked)
		if checked == "" {
			fail("name", errors.New("the assertion checks nothing: give it outcome, contains, excludes, matches, schema, paths, trajectory or budget"))
		}
		s.rules = append(s.rules, r)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return s, nil
}

func resolve(schema json.RawMessage) (*jsonschema.Resolved, error) {
	var s jsonschema.Schema
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, fmt.Errorf("no JSON Schema: %w", err)
	}
	return s.Resolve(nil)
}

// describe names an assertion by what it checks.
func (r rule) describe() string {
	var words []string
	add := func(set bool, word string) {
		if set {
			words = append(words, word)
		}
	}
	add(r.Outcome != "", "outcome "+r.Outcome)
	add(len(r.Contains) > 0, "contains "+strings.Join(r.Contains, ", "))
	add(len(r.Excludes) > 0, "excludes "+strings.Join(r.Excludes, ", "))
	add(r.Matches != "", "matches "+r.Matches)
	add(len(r.Schema) > 0, "output schema")
	for _, p := range r.Paths {
		add(true, "path "+p.Path)
	}
	add(r.Trajectory.checks(), "trajectory")
	add(r.Budget != nil && *r.Budget != (Budget{}), "budget")
	add(r.Func != nil, "function")
	return strings.Join(words, "; ")
}
