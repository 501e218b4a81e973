package lab_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd"
	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/lab"
	"github.com/helixd/helixd/agentloop/lab/result"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/integration/testkit"
)

// planted are the regressions of the candidate: ten kinds, three sessions of each.
var planted = map[string]struct {
	sessions []int
	kind     result.Kind
	why      string // a part of the reason
}{
	"other arguments":         {[]int{169, 179, 189}, result.ToolCall, "refund has other arguments: amount"},
	"a call is missing":       {[]int{199, 209, 219}, result.Output, "instead of tool-call refund"},
	"a call is added":         {[]int{101, 106, 111}, result.ToolCall, "workspace_list_files instead of output"},
	"an approval is added":    {[]int{59, 69, 79}, result.Approval, "approval refund is added"},
	"an approval is avoided":  {[]int{109, 119, 129}, result.Approval, "approval refund is avoided"},
	"a schema refuses a call": {[]int{139, 149, 159}, result.Approval, ""},
	"an output is refused":    {[]int{202, 207, 212}, result.ToolResult, "__finish__"},
	"too many steps":          {[]int{303, 308, 313}, result.Error, "error agent_max_steps_exceeded"},
	"another answer":          {[]int{201, 206, 211}, result.Output, "output differs"},
	"another task":            {[]int{302, 307, 312}, result.SubAgent, "sub-agent grader has other arguments"},
}

func has(name string, n int) bool { return slices.Contains(planted[name].sessions, n) }

// changedAgents are the candidate, with the script of its models.
func changedAgents(w *world) ([]lab.Agent, []lab.Rule) {
	all := agents(w)
	for i := range all {
		a := &all[i]
		switch a.Name {
		case "desk":
			refund := &a.Tools[slices.IndexFunc(a.Tools, func(t agentloop.Tool) bool { return t.Name == "refund" })]
			before := refund.RequireApproval
			refund.RequireApproval = func(ctx context.Context, c *agentloop.Call, args json.RawMessage) (bool, error) {
				var in struct{ Amount int }
				if err := json.Unmarshal(args, &in); err != nil {
					return true, err
				}
				if has("an approval is added", in.Amount) || has("an approval is avoided", in.Amount) {
					return has("an approval is added", in.Amount), nil
				}
				return before(ctx, c, args)
			}
			refund.InputSchema = json.RawMessage(strings.Replace(refundArgs, `"amount":{"type":"integer"}`, `"amount":{"type":"integer","not":{"enum":[139,149,159]}}`, 1))
		case "grader":
			a.OutputSchema = json.RawMessage(strings.Replace(verdict, `"of":{"type":"integer"}`, `"of":{"type":"integer","not":{"enum":[202,207,212]}}`, 1))
		case "looper":
			a.MaxSteps = 7
		}
	}
	var script []lab.Rule
	for name, p := range planted {
		for _, n := range p.sessions {
			rule := lab.Rule{When: fmt.Sprintf("Please do %d now", n)}
			say := func(name string, args any) scripted.Call {
				raw, err := json.Marshal(args)
				if err != nil {
					panic(err)
				}
				return scripted.Call{Name: name, Arguments: raw}
			}
			calls := func(c ...scripted.Call) scripted.Turn { return scripted.Turn{ToolCalls: c} }
			find := calls(say("find", object{"n": n}), say("find", object{"n": n}))
			write := calls(say("workspace_write_file", object{"path": "a.txt", "content": fmt.Sprint("draft ", n)}))
			read := calls(say("workspace_read_file", object{"path": "a.txt"}))
			switch name {
			case "other arguments":
				rule.Agent, rule.Turns = "desk", []scripted.Turn{find, calls(say("refund", object{"amount": n + 1, "order": fmt.Sprint("o-", n)}))}
			case "a call is missing":
				rule.Agent, rule.Turns = "desk", []scripted.Turn{find, {Text: "I leave it."}}
			case "a call is added":
				rule.Agent, rule.Turns = "writer", []scripted.Turn{write, read, calls(say("workspace_list_files", object{})), {Text: "There."}}
			case "another answer":
				rule.Agent, rule.Turns = "writer", []scripted.Turn{write, read, {Text: "I wrote something."}}
			case "another task":
				rule.Agent, rule.Turns = "planner", []scripted.Turn{calls(say("subagent__grader", object{"message": fmt.Sprint("Grade strictly ", n)}))}
			default:
				continue
			}
			script = append(script, rule)
		}
	}
	return lab.Agents(all...), script
}

// Of 500 recorded sessions, the lab finds the 30 with a planted regression and no others, asks
// nothing outside, and takes less than a minute. Without HELIX_FULL there are fewer of the others.
func TestPlantedRegressionsAreFound(t *testing.T) {
	testkit.Long(t)
	if testing.Short() {
		t.Skip("500 sessions")
	}
	isPlanted := map[int]bool{}
	for _, p := range planted {
		for _, n := range p.sessions {
			isPlanted[n] = true
		}
	}
	require.Len(t, isPlanted, 30)
	whole := testkit.InFull()
	c := recordThose(t, 500, func(n int) bool { return whole || isPlanted[n] || n%7 == 0 })
	lived := &world{}
	candidate, script := changedAgents(lived)
	node, err := helixd.Open(t.Context(), t.TempDir())
	require.NoError(t, err)
	t.Cleanup(node.Close)
	began := time.Now()
	r, err := lab.Run(t.Context(), lab.Options{Name: "planted", Cohort: c, Candidate: candidate, Script: script, Log: node.Log})
	require.NoError(t, err)
	t.Logf("judged %d sessions with %d records in %s", r.Judged, c.Header.Records, time.Since(began))
	require.Less(t, time.Since(began), time.Minute)
	require.Empty(t, lived.done, "nothing is really done")
	require.Zero(t, r.Tokens, "no model is asked")
	require.Equal(t, 1, r.ExitCode())

	found := map[string]result.Difference{}
	for _, d := range r.Regressions {
		found[d.Session] = d
	}
	missed := 0
	for name, p := range planted {
		for _, n := range p.sessions {
			id := fmt.Sprintf("s-%04d", n)
			d, ok := found[id]
			if !ok {
				missed++
				t.Errorf("%s: %s is not found", name, id)
				continue
			}
			delete(found, id)
			if d.Kind != p.kind || !strings.Contains(d.Why, p.why) {
				t.Errorf("%s: %s: found as %s: %s", name, id, d.Kind, d.Why)
			}
		}
	}
	require.Zero(t, missed)
	require.Empty(t, found, "false alarms")
	require.Empty(t, r.Unjudged)
	require.Empty(t, r.Flaky)
}

// rounds is how often a run is repeated: HELIX_LAB_ROUNDS, or few, and once in a short run.
func rounds(t *testing.T, few int) int {
	t.Helper()
	var n int
	if _, err := fmt.Sscan(os.Getenv("HELIX_LAB_ROUNDS"), &n); err == nil {
		return n
	}
	if testing.Short() {
		return 1
	}
	return few
}
