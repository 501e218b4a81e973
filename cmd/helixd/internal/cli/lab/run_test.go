package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/lab/result"
	"github.com/helixd/helixd/cmd/helixd/internal/clitest"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
)

// judged runs the command with a report that a driver would give.
func judged(t *testing.T, c runCmd, report *result.Report, failure error) (stdout string, code int, err error) {
	t.Helper()
	if c.File == "" {
		c.File = text(t, "lab.yaml", "cohort: c\ncandidate: helix.yaml\n")
	}
	var out bytes.Buffer
	p := &flags.Process{Ctx: t.Context(), Stdout: &out, Stderr: new(bytes.Buffer), Log: slog.New(slog.DiscardHandler)}
	_, err = c.judge(p, func(_ context.Context, _ *flags.Process, _ runCmd, f *file, progress func(int, int)) (*result.Report, error) {
		progress(1, 1)
		return report, failure
	})
	if err != nil {
		code = flags.ExitCode(err)
	}
	return out.String(), code, err
}

func text(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// reported is the report of one session.
func reported(v result.Verdict) *result.Report {
	return result.New(result.Header{Cohort: "c", Sessions: 1}, []result.Comparison{{
		Session: "s1", Agent: "a", Verdict: v,
		Difference: &result.Difference{Session: "s1", Sequence: 4, Agent: "a", Kind: result.ToolCall, Why: "because", Observed: "o", Baseline: "b", Candidate: "c"},
	}})
}

func TestExitCodesOfALab(t *testing.T) {
	out, code, err := judged(t, runCmd{}, reported(result.Same), nil)
	require.NoError(t, err)
	require.Zero(t, code)
	require.Equal(t, "0 regressions, 0 improvements, 0 flaky in 1 session, 0.0 s\n", out)

	out, code, err = judged(t, runCmd{}, reported(result.Regression), nil)
	require.EqualError(t, err, "1 regression")
	require.Equal(t, 1, code)
	require.Contains(t, out, "regression: s1 at sequence 4, agent a, tool-call\n  why:       because\n  observed:  o\n  baseline:  b\n  candidate: c\n")

	_, code, err = judged(t, runCmd{}, reported(result.Unjudged), nil)
	require.EqualError(t, err, "1 of 1 session could not be judged: because")
	require.Equal(t, 2, code)

	nowhere := reported(result.Unjudged)
	nowhere.Unjudged[0] = result.Difference{Session: "s1", Why: "no message"}
	out, _, _ = judged(t, runCmd{}, nowhere, nil)
	require.Contains(t, out, "not judged: s1\n  why:       no message\n0 regressions", "a session without a decision has no place")

	_, code, err = judged(t, runCmd{}, nil, errors.New("no cohort"))
	require.EqualError(t, err, "no cohort")
	require.Equal(t, 2, code)

	_, code, _ = judged(t, runCmd{File: text(t, "lab.yaml", "cohort: c\n")}, reported(result.Same), nil)
	require.Equal(t, 2, code, "a file that can't be used")
	_, code, _ = judged(t, runCmd{Live: []string{"x"}}, reported(result.Same), nil)
	require.Equal(t, 2, code)
}

func TestALabWritesItsReports(t *testing.T) {
	dir := t.TempDir()
	summary := filepath.Join(dir, "summary.md")
	require.NoError(t, os.WriteFile(summary, []byte("before\n"), 0o600))
	t.Setenv("GITHUB_STEP_SUMMARY", summary)
	c := runCmd{Report: filepath.Join(dir, "r.json"), JUnit: filepath.Join(dir, "r.xml"), JSON: true}
	out, _, err := judged(t, c, reported(result.Improvement), nil)
	require.NoError(t, err)
	text, err := os.ReadFile(c.Report)
	require.NoError(t, err)
	require.JSONEq(t, string(text), out)
	var r result.Report
	require.NoError(t, json.Unmarshal(text, &r))
	require.Len(t, r.Improvements, 1)
	xml, err := os.ReadFile(c.JUnit)
	require.NoError(t, err)
	require.Contains(t, string(xml), `<testcase classname="a" name="s1">`)
	md, err := os.ReadFile(summary)
	require.NoError(t, err)
	require.Contains(t, string(md), "before\n## Regression lab: 0 regressions, 1 improvement")
}

// A wrong name is no empty page.
func TestViewOfNoLab(t *testing.T) {
	dir := t.TempDir()
	err := clitest.RunIn[Commands](t, &flags.Process{Ctx: t.Context(), Stdout: io.Discard, Stderr: io.Discard, Log: slog.New(slog.DiscardHandler)},
		"lab", "view", filepath.Join(dir, "typo.yaml"), "--listen", "127.0.0.1:0")
	require.ErrorContains(t, err, "no lab was run there")
	require.ErrorContains(t, err, "typo.yaml")
	require.NoDirExists(t, filepath.Join(dir, ".lab"))
}
