package result

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// script is a lane as lines of "kind name content"; "agent>" before the kind names the agent.
func script(lines ...string) Lane {
	l := Lane{Outcome: completed, Steps: 1}
	for i, line := range lines {
		agent := ""
		if a, rest, ok := strings.Cut(line, "> "); ok {
			agent, line = a, rest
		}
		words := strings.SplitN(line, " ", 3)
		d := NewDecision(Kind(words[0]), agent, words[1], []byte(words[2]))
		d.Sequence = uint64(i + 1)
		if d.Kind == ModelRequest {
			d.Parts = map[string]string{}
			for part := range strings.FieldsSeq(words[2]) {
				name, value, _ := strings.Cut(part, "=")
				d.Parts[name] = value
			}
		}
		if d.Kind == Output {
			l.Output = words[2]
		}
		l.Decisions = append(l.Decisions, d)
	}
	return l
}

// recorded is a session that refunds after an approval.
func recorded() []string {
	return []string{
		`model-request m prompt=1 tools=1 memory=1 messages=1`,
		`model-answer m {"calls":["refund"]}`,
		`tool-call refund {"order":"A1","amount":5}`,
		`approval refund {"order":"A1","amount":5}`,
		`tool-result refund {"ok":true}`,
		`model-request m prompt=1 tools=1 memory=1 messages=2`,
		`model-answer m {"text":"done"}`,
		`output - {"text":"done"}`,
	}
}

// with replaces lines of the recorded session; "" drops one.
func with(lines map[int]string) Lane {
	all := recorded()
	for i, l := range lines {
		all[i] = l
	}
	return script(slices.DeleteFunc(all, func(l string) bool { return l == "" })...)
}

func session(candidate ...Lane) Session {
	base := script(recorded()...)
	return Session{ID: "s1", Agent: "support", Observed: base, Baseline: []Lane{base}, Candidate: candidate}
}

func TestVerdicts(t *testing.T) {
	failed := func(l Lane, code string) Lane {
		l.Outcome, l.Error = "failed", code
		return l
	}
	cut := func(l Lane, n int, why string) Lane {
		l.Decisions, l.Outcome, l.Unjudged = l.Decisions[:n], "", why
		return l
	}
	same := script(recorded()...)
	prompt := map[int]string{0: `model-request m prompt=2 tools=1 memory=1 messages=1`, 5: `model-request m prompt=2 tools=1 memory=1 messages=2`}
	amount := map[int]string{
		0: prompt[0], 1: `model-answer m {"calls":["refund!"]}`,
		2: `tool-call refund {"order":"A1","amount":50}`, 3: `approval refund {"order":"A1","amount":50}`,
	}
	for _, c := range []struct {
		name      string
		candidate Lane
		rules     Rules
		verdict   Verdict
		kind      Kind
		sequence  uint64
		why       string
	}{
		{"the same", same, Rules{}, Same, "", 0, ""},
		{"only the request differs", with(prompt), Rules{}, Changed, ModelRequest, 1, "prompt changed"},
		{"arguments after a prompt", with(amount), Rules{}, Regression, ToolCall, 3, "prompt changed in the request at sequence 1; tool-call refund has other arguments: amount"},
		{"accepted", with(amount), Rules{Accept: []Kind{ToolCall}}, Changed, ToolCall, 3, "prompt changed in the request at sequence 1; tool-call refund has other arguments: amount"},
		{"live", with(amount), Rules{Live: true}, Changed, ToolCall, 3, "prompt changed in the request at sequence 1; tool-call refund has other arguments: amount"},
		{"approval avoided", with(map[int]string{3: ""}), Rules{}, Regression, Approval, 4, "approval refund is avoided"},
		{"another answer to the same request", with(map[int]string{6: `model-answer m {"text":"no"}`, 7: `output - {"text":"no"}`}), Rules{}, Regression, Output, 8, "output - differs"},
		{"tool schema", with(map[int]string{5: `model-request m prompt=1 tools=2 memory=1 messages=2`, 6: `model-answer m {"text":"no"}`, 7: `output - {"text":"no"}`}), Rules{}, Regression, Output, 8, "tool schema changed in the request at sequence 6; output - differs"},
		{"memory", with(map[int]string{0: `model-request m prompt=1 tools=1 memory=2 messages=9`, 1: `model-answer m {"calls":[]}`}), Rules{}, Regression, ModelAnswer, 2, "memory changed in the request at sequence 1; model-answer m differs"},
		{"the run fails", failed(same, "model_error"), Rules{}, Regression, OutcomeKind, 8, "the outcome is failed (model_error) instead of completed"},
		{"not recorded", cut(with(prompt), 1, "no recorded answer"), Rules{}, Unjudged, ModelRequest, 1, "no recorded answer; prompt changed"},
		{"refused after it differed", cut(with(amount), 3, "no recorded result"), Rules{}, Regression, ToolCall, 3, "prompt changed in the request at sequence 1; tool-call refund has other arguments: amount"},
		{"ended early without a difference", cut(same, 3, "the budget is spent"), Rules{}, Unjudged, OutcomeKind, 8, "the budget is spent"},
		{"new at the end", with(map[int]string{7: "output - {\"text\":\"done\"}"}), Rules{}, Same, "", 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.rules.Compare(session(c.candidate))
			require.Equal(t, c.verdict, got.Verdict, "%+v", got.Difference)
			if c.kind == "" {
				require.Nil(t, got.Difference)
				return
			}
			require.Equal(t, c.kind, got.Difference.Kind)
			require.Equal(t, c.why, got.Difference.Why)
			require.Equal(t, c.sequence, got.Difference.Sequence)
			require.Equal(t, "support", got.Difference.Agent)
			require.Equal(t, got.Difference.Baseline, got.Difference.Observed, "the baseline is what was recorded")
		})
	}
}

func TestADifferenceShowsAllLanes(t *testing.T) {
	d := Rules{}.Compare(session(with(map[int]string{2: `tool-call refund {"order":"A1","amount":50}`}))).Difference
	require.Equal(t, &Difference{
		Session: "s1", Sequence: 3, Agent: "support", Kind: ToolCall,
		Observed:  `tool-call refund {"amount":5,"order":"A1"}`,
		Baseline:  `tool-call refund {"amount":5,"order":"A1"}`,
		Candidate: `tool-call refund {"amount":50,"order":"A1"}`,
		Why:       "model: another answer to the same request; tool-call refund has other arguments: amount",
	}, d)
	long := fmt.Sprintf(`output - {"text":"%s!%s"}`, strings.Repeat("a", 300), strings.Repeat("b", 900))
	longer := strings.Replace(long, "!", "?", 1)
	s := session(with(map[int]string{7: long}))
	s.Baseline = []Lane{with(map[int]string{7: longer})}
	d = Rules{}.Compare(s).Difference
	require.Contains(t, d.Candidate, "aaa!bbb")
	require.Contains(t, d.Baseline, "aaa?bbb")
	require.Less(t, len(d.Candidate), 300)
}

// Sub-agents that work at the same time may be recorded in any order.
func TestAgentsAreComparedEachByItself(t *testing.T) {
	base := script(`sub-agent a {"n":1}`, `sub-agent b {"n":2}`, `/a> tool-call x {"n":1}`, `/b> tool-call y {"n":2}`, `output - "ok"`)
	other := script(`sub-agent a {"n":1}`, `sub-agent b {"n":2}`, `/b> tool-call y {"n":2}`, `/a> tool-call x {"n":1}`, `output - "ok"`)
	s := Session{ID: "s", Agent: "top", Observed: base, Baseline: []Lane{base}, Candidate: []Lane{other}}
	require.Equal(t, Same, Rules{}.Compare(s).Verdict)
	s.Candidate[0] = script(`sub-agent a {"n":1}`, `sub-agent b {"n":2}`, `/b> tool-call y {"n":3}`, `/a> tool-call x {"n":1}`, `output - "ok"`)
	got := Rules{}.Compare(s)
	require.Equal(t, Regression, got.Verdict)
	require.Equal(t, "/b", got.Difference.Agent)
	require.Equal(t, uint64(4), got.Difference.Sequence)
	require.Equal(t, []string{"y"}, got.Arguments)
}

func TestCallsAndApprovalsThatDiffer(t *testing.T) {
	base := script(`tool-call a {"n":1}`, `tool-call b {"n":1}`, `approval b {"n":1}`, `output - "ok"`)
	candidate := script(`tool-call a {"n":2}`, `approval a {"n":2}`, `tool-call c {"n":1}`, `output - "ok"`)
	got := Rules{}.Compare(Session{ID: "s", Agent: "x", Observed: base, Baseline: []Lane{base}, Candidate: []Lane{candidate}})
	require.Equal(t, Acts{
		Arguments: []string{"a"}, CallsAdded: []string{"c"}, CallsMissing: []string{"b"},
		ApprovalsAdded: []string{"a"}, ApprovalsAvoided: []string{"b"},
	}, got.Acts)
}

func TestFlakySessionsAreToldApart(t *testing.T) {
	worse := with(map[int]string{2: `tool-call refund {"order":"A1","amount":50}`})
	s := session(worse)
	s.Baseline = append(s.Baseline, worse)
	got := Rules{}.Compare(s)
	require.Equal(t, Flaky, got.Verdict)
	require.Equal(t, "the baseline's repeats differ: tool-call refund has other arguments: amount", got.Difference.Why)

	s = session(script(recorded()...), worse, script(recorded()...))
	got = Rules{}.Compare(s)
	require.Equal(t, Regression, got.Verdict, "a candidate that differs now and then has regressed: the baseline does not")
	require.True(t, strings.HasSuffix(got.Difference.Why, "(in 1 of 3 repeats)"), got.Difference.Why)

	worse.Outcome = "failed"
	s = session(script(recorded()...), worse, script(recorded()...))
	require.Equal(t, Flaky, Rules{Live: true}.Compare(s).Verdict)
	s = session(worse, worse, script(recorded()...))
	require.Equal(t, Regression, Rules{Live: true}.Compare(s).Verdict)
}

func TestAssertionsBindTheCandidate(t *testing.T) {
	suite, err := NewSuite([]Assertion{{Outcome: completed}, {Name: "says it is done", Contains: []string{"done"}}})
	require.NoError(t, err)
	r := Rules{Suite: suite}
	failing := script(recorded()[:6]...)
	failing.Outcome, failing.Error = "failed", "tool_error"

	s := Session{ID: "s", Agent: "x", Observed: failing, Baseline: []Lane{failing}, Candidate: []Lane{failing}}
	got := r.Compare(s)
	require.Equal(t, Regression, got.Verdict, "a failing assertion fails, whatever the baseline does")
	require.Equal(t, AssertionKind, got.Difference.Kind)
	require.Contains(t, got.Difference.Why, `assertion "outcome completed": the outcome is failed (tool_error), not completed`)
	require.Contains(t, got.Difference.Why, `assertion "says it is done": the output does not contain "done"`)

	s.Candidate = []Lane{script(recorded()...)}
	got = r.Compare(s)
	require.Equal(t, Improvement, got.Verdict)
	require.Equal(t, [2]bool{false, true}, got.Passed)
	require.Contains(t, got.Difference.Why, `assertion "says it is done" holds now`)
}

func TestTheJudgeCounts(t *testing.T) {
	s := session(script(recorded()...))
	s.Baseline[0].Judgement = &Judgement{Pass: true}
	s.Candidate[0].Judgement = &Judgement{Reason: "rude"}
	got := Rules{Live: true}.Compare(s)
	require.Equal(t, Regression, got.Verdict)
	require.Equal(t, JudgeKind, got.Difference.Kind)
	require.Equal(t, "the judge: rude", got.Difference.Why)
	s.Baseline[0].Judgement.Pass = false
	require.Equal(t, Same, Rules{Live: true}.Compare(s).Verdict, "the baseline is no better")
}

func TestWhatALaneTook(t *testing.T) {
	l := script(recorded()...)
	l.Cost, l.Tokens, l.Latency = 0.5, Tokens{Input: 10, Output: 5, Cached: 3}, 1500*time.Microsecond
	require.Equal(t, Measures{Outcome: completed, Cost: 0.5, Tokens: 15, Steps: 1, LatencyMs: 1.5}, measuresOf(l))
}
