package result

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Verdict is what a change did to a session.
type Verdict string

// The verdicts.
const (
	Regression  Verdict = "regression"
	Improvement Verdict = "improvement"
	Flaky       Verdict = "flaky"    // the baseline differs between repeats
	Changed     Verdict = "changed"  // only in what the rules accept
	Same        Verdict = "same"     // no difference
	Unjudged    Verdict = "unjudged" // the lanes could not be driven far enough
)

// Kinds of differences that are no decision's.
const (
	OutcomeKind   Kind = "outcome"   // how the last run ended
	AssertionKind Kind = "assertion" // an assertion failed
	JudgeKind     Kind = "judge"     // the judge did not pass the candidate
)

// Rules are by which sessions are judged.
type Rules struct {
	// Suite has the assertions, or is nil. A candidate that fails one is a regression, whatever the
	// baseline does. One that passes what the baseline fails is an improvement.
	Suite *Suite
	// Accept are kinds of decisions whose difference alone is no regression.
	Accept []Kind
	// Live says that models answered live: two answers are seldom the same, so only outcomes,
	// assertions and the judge count.
	Live bool
}

// Judgement is what a judge says of a lane.
type Judgement struct {
	Pass   bool   `json:"pass"`
	Reason string `json:"reason,omitempty"`
}

// Comparison is one session's result.
type Comparison struct {
	Session string  `json:"session"`
	Agent   string  `json:"agent"`
	Verdict Verdict `json:"verdict"`
	// Difference says where and why the lanes part; nil if they do not.
	Difference *Difference `json:"difference,omitempty"`
	// Prefix is the hash of the candidate's decisions that equal the recorded ones.
	Prefix string  `json:"prefix,omitempty"`
	Checks []Check `json:"checks,omitempty"` // of the candidate
	Acts
	// Observed, Baseline and Candidate are what the lanes took; the first one of repeats.
	Observed  Measures `json:"observed"`
	Baseline  Measures `json:"baseline"`
	Candidate Measures `json:"candidate"`
	// Passed says of the baseline and of the candidate whether the run completed, every assertion
	// holds, and the judge, if there is one, passes it.
	Passed [2]bool `json:"passed"`
	// judged is whether the judge passes the recorded session; nil without one.
	judged *Judgement
}

// Measures are what a lane took and how it ended.
type Measures struct {
	Outcome   string  `json:"outcome,omitempty"`
	Cost      float64 `json:"cost"`
	Tokens    int64   `json:"tokens"`
	Steps     int     `json:"steps"`
	LatencyMs float64 `json:"latencyMs"`
}

func measuresOf(l Lane) Measures {
	return Measures{
		Outcome: outcomeOf(l), Cost: l.Cost, Tokens: l.Tokens.Input + l.Tokens.Output, Steps: l.Steps,
		LatencyMs: float64(l.Latency.Microseconds()) / 1000,
	}
}

// grade is how good a lane is.
type grade struct {
	checks []Check
	pass   bool // of all
}

func (r Rules) grade(s Session, l Lane) grade {
	g := grade{pass: l.Outcome == completed && l.Unjudged == "" && (l.Judgement == nil || l.Judgement.Pass)}
	if l.Unjudged == "" {
		g.checks = r.Suite.Check(s.ID, s.Agent, l)
	}
	for _, c := range g.checks {
		g.pass = g.pass && c.Pass
	}
	return g
}

// passes counts the checks that pass.
func (g grade) passes() (n int) {
	for _, c := range g.checks {
		if c.Pass {
			n++
		}
	}
	return n
}

const completed = "completed"

// rank orders outcomes from the worst to the best.
func rank(outcome string) int {
	return slices.Index([]string{"failed", "interrupted", "", "paused", completed}, outcome)
}

// mostWhy is how many characters of a reason are kept: what a tool is asked may be in it.
const mostWhy = 2000

// Compare judges a session.
func (r Rules) Compare(s Session) Comparison {
	c := r.compare(s)
	if c.Difference != nil {
		c.Difference.Why = cut(c.Difference.Why, mostWhy)
	}
	for i := range c.Checks {
		c.Checks[i].Message = cut(c.Checks[i].Message, mostWhy)
	}
	return c
}

// cut keeps so many characters of a text.
func cut(text string, most int) string {
	n := 0
	for at := range text {
		if n == most {
			return text[:at] + "…"
		}
		n++
	}
	return text
}

func (r Rules) compare(s Session) Comparison {
	c := Comparison{Session: s.ID, Agent: s.Agent, Observed: measuresOf(s.Observed), judged: s.Observed.Judgement}
	if len(s.Baseline) == 0 || len(s.Candidate) == 0 {
		c.Verdict, c.Difference = Unjudged, s.unjudged(Lane{}, Lane{Unjudged: "a lane was not run"})
		return c
	}
	base, candidate := s.Baseline[0], s.Candidate[0]
	c.Baseline, c.Prefix = measuresOf(base), candidate.Prefix
	if flaky := r.flaky(s); flaky != nil {
		c.Verdict, c.Difference, c.Candidate = Flaky, flaky, measuresOf(candidate)
		return c
	}
	worst, times := 0, map[Verdict]int{}
	var verdicts []Verdict
	var differences []*Difference
	for i, l := range s.Candidate {
		v, d := r.one(s, base, l)
		verdicts, differences = append(verdicts, v), append(differences, d)
		times[v]++
		if severity(v) > severity(verdicts[worst]) {
			worst = i
		}
	}
	if r.Live && verdicts[worst] == Regression && 2*times[Regression] <= len(s.Candidate) {
		c.Verdict = Flaky // a live model fails now and then
	} else {
		c.Verdict = verdicts[worst]
	}
	c.Difference = differences[worst]
	if n := times[verdicts[worst]]; n < len(s.Candidate) {
		c.Difference.Why += fmt.Sprintf(" (in %d of %d repeats)", n, len(s.Candidate))
	}
	candidate = s.Candidate[worst]
	grades := [2]grade{r.grade(s, base), r.grade(s, candidate)}
	c.Candidate, c.Checks, c.Prefix = measuresOf(candidate), grades[1].checks, candidate.Prefix
	c.Passed = [2]bool{grades[0].pass, grades[1].pass}
	c.Acts = actsOf(base, candidate)
	return c
}

func severity(v Verdict) int {
	return slices.Index([]Verdict{Same, Changed, Improvement, Unjudged, Regression}, v)
}

// flaky returns where the baseline's repeats differ, or nil.
func (r Rules) flaky(s Session) *Difference {
	first := s.Baseline[0]
	for _, l := range s.Baseline[1:] {
		if d := parts(first, l, isBehaviour); d != nil && !r.Live {
			return s.difference(d, first, "the baseline's repeats differ: "+d.detail())
		}
		a, b := r.grade(s, first), r.grade(s, l)
		if a.pass != b.pass || a.passes() != b.passes() || first.Outcome != l.Outcome {
			d := s.ended(OutcomeKind, first, l)
			d.Why = "the baseline's repeats end differently"
			return d
		}
	}
	return nil
}

// one judges one candidate lane.
func (r Rules) one(s Session, base, l Lane) (Verdict, *Difference) {
	bg, cg := r.grade(s, base), r.grade(s, l)
	parted := behaviour(base, l)
	accepted := parted == nil || r.Live || slices.Contains(r.Accept, parted.kind())
	if parted == nil {
		parted = parts(base, l, isRequest)
	}
	describe := func(kind Kind, reasons, more []string) *Difference {
		if parted == nil {
			d := s.ended(kind, base, l)
			d.Why = strings.Join(append(reasons, more...), "; ")
			return d
		}
		return s.difference(parted, base, strings.Join(slices.Concat(reasons, []string{parted.why(base, l)}, more), "; "))
	}
	kind, worse, better := r.reasons(base, l, bg, cg)
	switch {
	case len(worse) > 0:
		return Regression, describe(kind, nil, worse)
	case base.Unjudged != "":
		return Unjudged, s.unjudged(base, Lane{Unjudged: "baseline: " + base.Unjudged})
	case !accepted && len(better) == 0:
		return Regression, describe(parted.kind(), nil, nil)
	case l.Unjudged != "":
		d := s.unjudged(base, l)
		if parted != nil {
			d = describe(parted.kind(), []string{l.Unjudged}, nil)
		}
		return Unjudged, d
	case len(better) > 0:
		return Improvement, describe(kind, better, nil)
	case parted != nil:
		return Changed, describe(parted.kind(), nil, nil)
	}
	return Same, nil
}

// reasons returns what a candidate does worse than it has to, or better than the baseline.
func (r Rules) reasons(base, l Lane, bg, cg grade) (kind Kind, worse, better []string) {
	for i, c := range cg.checks {
		if !c.Pass {
			kind, worse = AssertionKind, append(worse, fmt.Sprintf("assertion %q: %s", c.Name, c.Message))
		} else if i < len(bg.checks) && !bg.checks[i].Pass {
			kind, better = cmp.Or(kind, AssertionKind), append(better, fmt.Sprintf("assertion %q holds now", c.Name))
		}
	}
	if l.Unjudged != "" || base.Unjudged != "" {
		return kind, worse, better
	}
	if a, b := rank(base.Outcome), rank(l.Outcome); a != b {
		text := fmt.Sprintf("the outcome is %s instead of %s", outcomeOf(l), outcomeOf(base))
		kind = cmp.Or(kind, OutcomeKind)
		if b < a {
			worse = append(worse, text)
		} else {
			better = append(better, text)
		}
	}
	if j := l.Judgement; j != nil && (base.Judgement == nil || base.Judgement.Pass != j.Pass) {
		kind = cmp.Or(kind, JudgeKind)
		if !j.Pass {
			worse = append(worse, "the judge: "+j.Reason)
		} else if base.Judgement != nil {
			better = append(better, "the judge: "+j.Reason)
		}
	}
	return kind, worse, better
}

// difference describes a divergence.
func (s Session) difference(d *divergence, base Lane, why string) *Difference {
	agent := d.agent
	if agent == "" {
		agent = s.Agent
	}
	return &Difference{
		Session: s.ID, Sequence: d.sequence(base), Agent: agent, Kind: d.kind(),
		Observed: d.at(s.Observed).words(d.b), Baseline: d.a.words(d.b), Candidate: d.b.words(d.a), Why: why,
	}
}

// ended describes lanes by their ends.
func (s Session) ended(kind Kind, base, l Lane) *Difference {
	return &Difference{
		Session: s.ID, Sequence: lastSequence(base), Agent: s.Agent, Kind: kind,
		Observed: ending(s.Observed), Baseline: ending(base), Candidate: ending(l),
	}
}

func (s Session) unjudged(base, l Lane) *Difference {
	d := s.ended(OutcomeKind, base, l)
	d.Why = l.Unjudged
	return d
}

func lastSequence(l Lane) (last uint64) {
	for _, d := range l.Decisions {
		last = max(last, d.Sequence)
	}
	return last
}

// ending says how a lane ended and with which output.
func ending(l Lane) string {
	return strings.TrimSuffix(outcomeOf(l)+": "+cut(l.Output, shown), ": ")
}
