package result

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/helixd/helixd/agentloop/lab/paired"
	"github.com/helixd/helixd/eventlog"
)

// Report is the lab's result. docs/reference/lab-report.schema.json describes its JSON.
type Report struct {
	// Cohort is the cohort's name, Hash what its file states.
	Cohort string `json:"cohort"`
	Hash   string `json:"hash"`
	// Sessions is the number of sessions in the cohort, Judged of those whose lanes could be driven.
	Sessions int `json:"sessions"`
	Judged   int `json:"judged"`
	// Regressions and the others are ordered by session; a session is in at most one of them.
	Regressions  []Difference `json:"regressions"`
	Improvements []Difference `json:"improvements"`
	// Flaky are sessions whose baseline differs between repeats: they have no other verdict.
	Flaky []Difference `json:"flaky"`
	// Changed are differences that the rules accept, Unjudged are sessions without a verdict.
	Changed  []Difference `json:"changed"`
	Unjudged []Difference `json:"unjudged"`
	// Cost, Tokens and Seconds are what the lab itself spent: on live models and on the clock.
	Cost    float64 `json:"cost"`
	Tokens  int64   `json:"tokens"`
	Seconds float64 `json:"seconds"`

	// Compared are the sessions that were judged and are not flaky, baseline against candidate.
	Compared Compared `json:"compared"`
	// Judge describes the judge; nil without one.
	Judge *JudgeReport `json:"judge,omitempty"`
	// Results has every session, ordered.
	Results []Comparison `json:"results"`
	// Lab is the id of the lab's session; "" if it was not kept.
	Lab string `json:"-"`
}

// Difference is where a session's lanes part.
type Difference struct {
	Session string `json:"session"`
	// Sequence is the position in the observed log of the decision that differs, or of the last
	// one before it if the candidate decided more than was recorded.
	Sequence uint64 `json:"sequence"`
	// Agent is the path of the agent that decided; the session's own agent by name.
	Agent string `json:"agent"`
	// Kind is the decision's, or outcome, assertion, judge if no decision differs.
	Kind Kind `json:"kind"`
	// Observed, Baseline and Candidate say what each lane did there, shortened.
	Observed  string `json:"observed"`
	Baseline  string `json:"baseline"`
	Candidate string `json:"candidate"`
	// Why names the cause: what of the request changed, how the decision differs, which rule failed.
	Why string `json:"why"`
}

// Place says in words where the difference is: the session, then sequence, agent and kind, as far
// as it has them. A session that could not be judged has none.
func (d Difference) Place() string {
	at := d.Session
	if d.Sequence > 0 {
		at += fmt.Sprintf(" at sequence %d", d.Sequence)
	}
	if d.Agent != "" {
		at += ", agent " + d.Agent
	}
	if d.Kind != "" {
		at += ", " + string(d.Kind)
	}
	return at
}

// Compared is the paired comparison of baseline and candidate.
type Compared struct {
	Passed    paired.Rates `json:"passed"`
	Cost      paired.Means `json:"cost"`
	Tokens    paired.Means `json:"tokens"`
	Steps     paired.Means `json:"steps"`
	LatencyMs paired.Means `json:"latencyMs"`
	// The numbers of calls and approvals that differ, over all sessions.
	Arguments        int `json:"arguments"`
	CallsAdded       int `json:"callsAdded"`
	CallsMissing     int `json:"callsMissing"`
	ApprovalsAdded   int `json:"approvalsAdded"`
	ApprovalsAvoided int `json:"approvalsAvoided"`
}

// JudgeReport describes the judge.
type JudgeReport struct {
	Model  string `json:"model"`
	Prompt string `json:"prompt"`
	// Agreement is that of the judge with people's labels of recorded sessions.
	Agreement paired.Agreement `json:"agreement"`
}

// Header is what a report says beside the sessions' results.
type Header struct {
	Cohort, Hash string
	// Sessions is the number in the cohort: those without a result were not judged.
	Sessions int
	Cost     float64
	Tokens   int64
	Seconds  float64
	// Judge is set if a judge was asked; Labels are people's, by session: whether the recorded
	// session is good.
	Judge  *JudgeReport
	Labels map[string]bool
}

// New makes a report of the sessions' results, in any order.
func New(h Header, results []Comparison) *Report {
	r := &Report{
		Cohort: h.Cohort, Hash: h.Hash, Sessions: h.Sessions, Cost: h.Cost, Tokens: h.Tokens, Seconds: h.Seconds,
		Regressions: []Difference{}, Improvements: []Difference{}, Flaky: []Difference{}, Changed: []Difference{}, Unjudged: []Difference{},
		Results: append([]Comparison{}, results...),
	}
	slices.SortFunc(r.Results, func(a, b Comparison) int { return cmp.Compare(a.Session, b.Session) })
	lists := map[Verdict]*[]Difference{Regression: &r.Regressions, Improvement: &r.Improvements, Flaky: &r.Flaky, Changed: &r.Changed, Unjudged: &r.Unjudged}
	for _, c := range r.Results {
		if c.Verdict != Unjudged {
			r.Judged++
		}
		if list := lists[c.Verdict]; list != nil {
			*list = append(*list, *c.Difference)
		}
	}
	r.Compared = compared(r.Results)
	if h.Judge != nil {
		judge := *h.Judge
		judge.Agreement = agreement(r.Results, h.Labels)
		r.Judge = &judge
	}
	return r
}

func compared(results []Comparison) Compared {
	var c Compared
	var passed [2][2]int // by the baseline's and the candidate's
	var cost, tokens, steps, latency [2][]float64
	at := map[bool]int{true: 1}
	for _, r := range results {
		if r.Verdict == Unjudged || r.Verdict == Flaky {
			continue
		}
		passed[at[r.Passed[0]]][at[r.Passed[1]]]++
		for side, m := range []Measures{r.Baseline, r.Candidate} {
			cost[side] = append(cost[side], m.Cost)
			tokens[side] = append(tokens[side], float64(m.Tokens))
			steps[side] = append(steps[side], float64(m.Steps))
			latency[side] = append(latency[side], m.LatencyMs)
		}
		c.Arguments += len(r.Arguments)
		c.CallsAdded += len(r.CallsAdded)
		c.CallsMissing += len(r.CallsMissing)
		c.ApprovalsAdded += len(r.ApprovalsAdded)
		c.ApprovalsAvoided += len(r.ApprovalsAvoided)
	}
	c.Passed = paired.OfRates(passed[1][1], passed[1][0], passed[0][1], passed[0][0])
	c.Cost, c.Tokens = paired.OfMeans(cost[0], cost[1]), paired.OfMeans(tokens[0], tokens[1])
	c.Steps, c.LatencyMs = paired.OfMeans(steps[0], steps[1]), paired.OfMeans(latency[0], latency[1])
	return c
}

// agreement compares the judge with people on the recorded sessions that have a label.
func agreement(results []Comparison, labels map[string]bool) paired.Agreement {
	var n [2][2]int
	at := map[bool]int{true: 1}
	for _, r := range results {
		if label, ok := labels[r.Session]; ok && r.judged != nil {
			n[at[label]][at[r.judged.Pass]]++
		}
	}
	return paired.OfRaters(n[1][1], n[1][0], n[0][1], n[0][0])
}

// The exit codes of a lab.
const (
	ExitPassed    = 0 // no regression
	ExitRegressed = 1
	ExitUnjudged  = 2 // the lab could not judge
)

// ExitCode is what the lab ends with. A regression that was found outweighs sessions that could not
// be judged.
func (r *Report) ExitCode() int {
	switch {
	case len(r.Regressions) > 0:
		return ExitRegressed
	case r.Judged < r.Sessions || r.Sessions == 0:
		return ExitUnjudged
	}
	return ExitPassed
}

// JSON writes the report as indented JSON with a newline at its end.
func (r *Report) JSON() ([]byte, error) {
	text, err := eventlog.Marshal(r)
	if err != nil {
		return nil, err
	}
	var out json.RawMessage = text
	indented, err := json.MarshalIndent(out, "", "  ")
	return append(indented, '\n'), err
}
