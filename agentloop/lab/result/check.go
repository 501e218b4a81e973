package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/helixd/helixd/eventlog"
)

// Check evaluates the assertions that are about a session. A lane that ended early has not shown
// what it would do, and is not for checking.
func (s *Suite) Check(session, agent string, l Lane) []Check {
	if s == nil {
		return nil
	}
	var checks []Check
	for _, r := range s.rules {
		if !r.isAbout(session, agent) {
			continue
		}
		c := Check{Name: r.Name, Pass: true}
		if err := r.check(session, agent, l); err != nil {
			c.Pass, c.Message = false, err.Error()
		}
		checks = append(checks, c)
	}
	return checks
}

func (r rule) isAbout(session, agent string) bool {
	return (r.Agent == "" || r.Agent == agent) && (len(r.Sessions) == 0 || slices.Contains(r.Sessions, session))
}

// Idle returns the name of an assertion that is about none of the sessions, whose agents are given by
// their ids; "" if each is about one. It would hold whatever the candidate does.
func (s *Suite) Idle(sessions map[string]string) string {
	if s == nil {
		return ""
	}
	for _, r := range s.rules {
		about := false
		for session, agent := range sessions {
			about = about || r.isAbout(session, agent)
		}
		if !about {
			return r.Name
		}
	}
	return ""
}

// check returns everything that the lane does not keep.
func (r rule) check(session, agent string, l Lane) error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if r.Outcome != "" && r.Outcome != l.Outcome {
		fail("the outcome is %s, not %s", outcomeOf(l), r.Outcome)
	}
	for _, text := range r.Contains {
		if !strings.Contains(l.Output, text) {
			fail("the output does not contain %q", text)
		}
	}
	for _, text := range r.Excludes {
		if strings.Contains(l.Output, text) {
			fail("the output contains %q", text)
		}
	}
	if r.matches != nil && !r.matches.MatchString(l.Output) {
		fail("the output does not match %s", r.Matches)
	}
	if r.schema != nil || r.paths != nil {
		var v any
		if err := json.Unmarshal([]byte(l.Output), &v); err != nil {
			fail("the output is not JSON: %v", err)
		} else {
			errs = append(errs, r.value(v))
		}
	}
	errs = append(errs, r.Trajectory.keeps(l.Decisions), r.Budget.keeps(l))
	if r.Func != nil {
		errs = append(errs, r.Func(session, agent, l))
	}
	return flat(errs)
}

// value checks the output's JSON.
func (r rule) value(v any) error {
	var errs []error
	if r.schema != nil {
		if err := r.schema.Validate(v); err != nil {
			errs = append(errs, fmt.Errorf("the output does not fit its schema: %w", err))
		}
	}
	for i, p := range r.paths {
		rule := r.Paths[i]
		nodes := p.Select(v)
		if len(nodes) == 0 {
			errs = append(errs, fmt.Errorf("%s selects nothing in the output", rule.Path))
		}
		for _, n := range nodes {
			got, err := eventlog.Marshal(n)
			var want any
			if err == nil && len(rule.Equals) > 0 && (json.Unmarshal(rule.Equals, &want) != nil || !equal(n, want)) {
				errs = append(errs, fmt.Errorf("%s is %s, not %s", rule.Path, got, rule.Equals))
			}
		}
	}
	return flat(errs)
}

// check refuses bounds that would be none.
func (b *Budget) check(fail func(field string, err error)) {
	if b == nil {
		return
	}
	for _, bound := range []struct {
		name string
		most float64
	}{
		{"cost", b.Cost}, {"tokens", float64(b.Tokens)}, {"steps", float64(b.Steps)}, {"calls", float64(b.Calls)}, {"seconds", b.Seconds},
	} {
		if bound.most < 0 {
			fail("budget."+bound.name, errors.New("must not be negative"))
		}
	}
}

func (b *Budget) keeps(l Lane) error {
	if b == nil {
		return nil
	}
	var errs []error
	over := func(name string, has, bound float64) {
		if bound > 0 && has > bound {
			errs = append(errs, fmt.Errorf("%s: %v, over the budget of %v", name, has, bound))
		}
	}
	calls := 0
	for _, d := range l.Decisions {
		if d.Kind == ToolCall || d.Kind == SubAgent {
			calls++
		}
	}
	over("cost", l.Cost, b.Cost)
	over("tokens", float64(l.Tokens.Input+l.Tokens.Output), float64(b.Tokens))
	over("steps", float64(l.Steps), float64(b.Steps))
	over("calls", float64(calls), float64(b.Calls))
	over("seconds", l.Latency.Seconds(), b.Seconds)
	return flat(errs)
}

// flat joins errors in one line.
func flat(errs []error) error {
	var words []string
	for _, err := range errs {
		if err != nil {
			words = append(words, err.Error())
		}
	}
	if words == nil {
		return nil
	}
	return errors.New(strings.Join(words, "; "))
}

// outcomeOf says how a lane ended.
func outcomeOf(l Lane) string {
	switch {
	case l.Outcome == "":
		return "that of no run"
	case l.Error != "":
		return l.Outcome + " (" + l.Error + ")"
	}
	return l.Outcome
}
