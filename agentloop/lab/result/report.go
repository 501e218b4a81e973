package result

// Report is the lab's result. Its JSON is described by report.schema.json.
type Report struct {
	// Cohort is the cohort's name, Hash what its file states.
	Cohort string `json:"cohort"`
	Hash   string `json:"hash"`
	// Sessions is the number of sessions in the cohort, Judged of those that have a verdict.
	Sessions int `json:"sessions"`
	Judged   int `json:"judged"`
	// Regressions are ordered by session; there is at most one a session.
	Regressions  []Difference `json:"regressions"`
	Improvements []Difference `json:"improvements"`
	// Flaky are sessions whose baseline differs between repeats: they have no other verdict.
	Flaky []Difference `json:"flaky"`
	// Cost, Tokens and Seconds are what the lab itself spent: on live models and on the clock.
	Cost    float64 `json:"cost"`
	Tokens  int64   `json:"tokens"`
	Seconds float64 `json:"seconds"`
}

// Difference is where a session's lanes part.
type Difference struct {
	Session string `json:"session"`
	// Sequence is the position in the observed log of the decision that differs, or of the last
	// one before it if the candidate decided more than was recorded.
	Sequence uint64 `json:"sequence"`
	// Agent is the path of the agent that decided; the session's own agent by name.
	Agent string `json:"agent"`
	Kind  Kind   `json:"kind"`
	// Observed, Baseline and Candidate say what each lane did there, shortened.
	Observed  string `json:"observed"`
	Baseline  string `json:"baseline"`
	Candidate string `json:"candidate"`
	// Why names the cause: what of the request changed, or which rule failed.
	Why string `json:"why"`
}
