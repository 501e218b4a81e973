package agentloop_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// A patch that the session's tree has no work left for would be parked: the tool,
// or the hook, hears of it, and nothing is recorded.
func TestAnUpdateThatIsTooMuchWorkFails(t *testing.T) {
	add := func(path string) eventlog.PatchOp {
		return eventlog.PatchOp{Op: "add", Path: path, Value: json.RawMessage("1")}
	}
	long := "/" + strings.Repeat("k", 2<<20)
	twoThirds := slices.Repeat([]eventlog.PatchOp{add("/n")}, 2*projector.MaxPatchWork/3/(4<<20))
	var errs []error
	tool := agentloop.NewTool("patch", "Changes the state.", func(_ context.Context, c *agentloop.Call, _ struct{}) (string, error) {
		if len(errs) == 0 {
			require.NoError(t, c.Patch([]eventlog.PatchOp{add(long)}))
		}
		for range 2 { // the second one in a call that has done much itself, or after such a call
			errs = append(errs, c.Patch(twoThirds))
		}
		return "ok", nil
	})
	var hook error
	call := scripted.Turn{ToolCalls: []scripted.Call{{Name: "patch", Arguments: json.RawMessage("{}")}}}
	g := newRig(t, agentloop.Agent{
		Name: "a", Tools: []agentloop.Tool{tool}, Model: script(call, call, done),
		Hooks: &agentloop.Hooks{AfterTool: func(_ context.Context, h *agentloop.HookContext, _ agentloop.AfterToolPayload) {
			hook = h.Patch(twoThirds)
		}},
	})
	g.start("s", "a", "go")
	state := g.ended("s")
	require.Equal(t, projector.SessionCompleted, state.Status)
	require.Len(t, errs, 4)
	require.NoError(t, errs[0])
	for _, err := range append(errs[1:], hook) {
		require.ErrorIs(t, err, projector.ErrTooMuchWork)
	}
	require.Empty(t, state.Parked)
}
