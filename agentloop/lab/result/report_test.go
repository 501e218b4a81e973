package result

import (
	"encoding/json"
	"encoding/xml"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"
)

// sample is a report with every verdict.
func sample(t *testing.T) *Report {
	t.Helper()
	suite, err := NewSuite([]Assertion{{Outcome: completed}})
	require.NoError(t, err)
	r := Rules{Suite: suite}
	worse := with(map[int]string{2: `tool-call refund {"order":"A1","amount":50}`})
	failed := script(recorded()...)
	failed.Outcome, failed.Error = "failed", "tool_error"
	var results []Comparison
	add := func(id string, base, candidate Lane, more ...Lane) {
		base.Judgement = &Judgement{Pass: base.Outcome == completed}
		results = append(results, r.Compare(Session{ID: id, Agent: "support", Observed: base, Baseline: append([]Lane{base}, more...), Candidate: []Lane{candidate}}))
	}
	good := script(recorded()...)
	add("s4", good, good, worse)
	add("s1", good, worse)
	add("s2", failed, good)
	add("s3", good, with(map[int]string{0: `model-request m prompt=2 tools=1`}))
	add("s5", good, Lane{Unjudged: "no | recorded answer"})
	add("s6", good, good)
	return New(Header{
		Cohort: "week", Hash: strings.Repeat("ab", 32), Sessions: 7, Cost: 0.5, Tokens: 900, Seconds: 1.5,
		Judge: &JudgeReport{Model: "m", Prompt: "Is it good?"}, Labels: map[string]bool{"s1": true, "s2": false, "s3": false},
	}, results)
}

func TestReport(t *testing.T) {
	r := sample(t)
	ids := func(list []Difference) (ids []string) {
		for _, d := range list {
			ids = append(ids, d.Session)
		}
		return ids
	}
	require.Equal(t, []string{"s1"}, ids(r.Regressions))
	require.Equal(t, []string{"s2"}, ids(r.Improvements))
	require.Equal(t, []string{"s3"}, ids(r.Changed))
	require.Equal(t, []string{"s4"}, ids(r.Flaky))
	require.Equal(t, []string{"s5"}, ids(r.Unjudged))
	require.Equal(t, 5, r.Judged)
	require.True(t, slices.IsSortedFunc(r.Results, func(a, b Comparison) int { return strings.Compare(a.Session, b.Session) }))
	require.Equal(t, 4, r.Compared.Passed.Pairs)
	require.Equal(t, 1, r.Compared.Arguments)
	require.Equal(t, 3, r.Judge.Agreement.Rated)
	require.InDelta(t, 2.0/3, r.Judge.Agreement.Share, 1e-9)
	require.Equal(t, "1 regression, 1 improvement, 1 flaky, 2 not judged in 7 sessions", r.Headline())
}

func TestExitCodes(t *testing.T) {
	same := Comparison{Session: "a", Verdict: Same}
	require.Equal(t, ExitPassed, New(Header{Sessions: 1}, []Comparison{same}).ExitCode())
	require.Equal(t, ExitUnjudged, New(Header{Sessions: 2}, []Comparison{same}).ExitCode())
	require.Equal(t, ExitUnjudged, New(Header{}, nil).ExitCode())
	require.Equal(t, ExitRegressed, sample(t).ExitCode())
}

// The page's schema describes a report, and names each of its members.
func TestReportsFitTheirSchema(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/lab-report.schema.json")
	require.NoError(t, err)
	var s jsonschema.Schema
	require.NoError(t, json.Unmarshal(text, &s))
	resolved, err := s.Resolve(nil)
	require.NoError(t, err)
	for _, r := range []*Report{sample(t), New(Header{}, nil)} {
		text, err := r.JSON()
		require.NoError(t, err)
		var v map[string]any
		require.NoError(t, json.Unmarshal(text, &v))
		require.NoError(t, resolved.Validate(v))
		for _, member := range []string{"cohort", "hash", "sessions", "judged", "regressions", "improvements", "flaky", "cost", "tokens", "seconds"} {
			require.Contains(t, v, member)
		}
		delete(v, "flaky")
		require.Error(t, resolved.Validate(v))
	}
	of := func(s *jsonschema.Schema) []string {
		var names []string
		for name := range s.Properties {
			names = append(names, name)
		}
		slices.Sort(names)
		return names
	}
	require.Equal(t, members(reflect.TypeFor[Report]()), of(&s))
	for name, typ := range map[string]reflect.Type{
		"difference": reflect.TypeFor[Difference](), "compared": reflect.TypeFor[Compared](), "result": reflect.TypeFor[Comparison](),
		"measures": reflect.TypeFor[Measures](), "judge": reflect.TypeFor[JudgeReport](),
		"rates": reflect.TypeFor[Report]().Field(0).Type, "means": reflect.TypeFor[Report]().Field(0).Type,
	} {
		if typ.Kind() == reflect.String {
			field, _ := reflect.TypeFor[Compared]().FieldByName(map[string]string{"rates": "Passed", "means": "Cost"}[name])
			typ = field.Type
		}
		require.Equal(t, members(typ), of(s.Defs[name]), name)
	}
}

// members are the names of a struct's JSON members, ordered.
func members(t reflect.Type) (names []string) {
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func TestJUnit(t *testing.T) {
	text, err := sample(t).JUnit()
	require.NoError(t, err)
	var suites junitSuites
	require.NoError(t, xml.Unmarshal(text, &suites))
	require.Equal(t, []int{6, 1, 1, 1}, []int{suites.Tests, suites.Failures, suites.Errors, suites.Skipped})
	require.Equal(t, "s1", suites.Suite.Cases[0].Name)
	require.Equal(t, "support", suites.Suite.Cases[0].Class)
	require.Contains(t, suites.Suite.Cases[0].Failure.Message, "other arguments: amount")
	require.Contains(t, suites.Suite.Cases[0].Failure.Text, `candidate: tool-call refund {"amount":50,"order":"A1"}`)
	require.Nil(t, suites.Suite.Cases[1].Failure, "an improvement passes")
	require.NotNil(t, suites.Suite.Cases[3].Skipped)
	require.NotNil(t, suites.Suite.Cases[4].Error)
}

func TestSummary(t *testing.T) {
	text := sample(t).Summary()
	require.Contains(t, text, "## Regression lab: 1 regression, 1 improvement, 1 flaky, 2 not judged in 7 sessions\n")
	require.Contains(t, text, "| `s1` | 3 | support | tool-call | model: another answer to the same request; tool-call refund has other arguments: amount |")
	require.Contains(t, text, `no \| recorded answer`)
	require.Contains(t, text, "kappa")
	require.Contains(t, text, "| passed | 75.0 % | 100.0 % | +25.0 |")
}
