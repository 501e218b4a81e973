package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector"
)

// A patch that the session's tree has no work left for would be parked: the tool,
// or the hook, learns of it, and nothing is recorded.
func TestAnUpdateThatIsTooMuchWorkFails(t *testing.T) {
	testkit.Slow(t)
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

// patchingAgent has a state of 2 MiB, and a hook that changes it after its tool.
func patchingAgent(hook func(h *agentloop.HookContext)) agentloop.Agent {
	long := "/" + strings.Repeat("k", 2<<20)
	tool := agentloop.NewTool("patch", "Makes a large state.", func(_ context.Context, c *agentloop.Call, _ struct{}) (string, error) {
		return "ok", c.Patch([]eventlog.PatchOp{addOne(long), addOne("/n")})
	})
	call := scripted.Turn{ToolCalls: []scripted.Call{{Name: "patch", Arguments: json.RawMessage("{}")}}}
	return agentloop.Agent{
		Name: "a", Tools: []agentloop.Tool{tool}, Model: script(call, done),
		Hooks: &agentloop.Hooks{AfterTool: func(_ context.Context, h *agentloop.HookContext, _ agentloop.AfterToolPayload) { hook(h) }},
	}
}

func addOne(path string) eventlog.PatchOp {
	return eventlog.PatchOp{Op: "add", Path: path, Value: json.RawMessage("1")}
}

// What is left of the tree's work is looked at once more when a hook's update is
// appended: other patches may have used it since, without changing the state.
func TestAHooksUpdateWhoseWorkOthersHaveUsed(t *testing.T) {
	testkit.Slow(t)
	var hook error
	first := true
	g := newRig(t, patchingAgent(func(h *agentloop.HookContext) {
		hook = agentloop.UpdateState(h, func(s *map[string]any) error {
			if first {
				first = false
				for n := 256; n > 0; n /= 2 {
					for h.Patch(slices.Repeat([]eventlog.PatchOp{addOne("/n")}, n)) == nil { // until nothing is left
					}
				}
			}
			(*s)["m"] = 1
			return nil
		})
	}))
	g.start("s", "a", "go")
	state := g.ended("s")
	require.Equal(t, projector.SessionCompleted, state.Status)
	require.ErrorIs(t, hook, projector.ErrTooMuchWork)
	require.Empty(t, state.Parked)
}

// between appends a record of somebody else's just before the first append with a
// state patch.
type between struct {
	eventlog.Log
	once sync.Once
	add  eventlog.Entry
}

func (b *between) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	if bytes.Contains(entries[0].Payload, []byte(`"/late"`)) {
		b.once.Do(func() {
			if head, err := b.Log.Head(ctx, session); err == nil {
				_, _ = eventlog.AppendOnce(ctx, b.Log, session, "outside", head, []eventlog.Entry{b.add})
			}
		})
	}
	return b.Log.Append(ctx, session, expected, entries)
}

// A producer's record that comes between an update and its append may use the rest of
// the tree's work. The fold then parks the update on every node, and the run continues.
func TestAnUpdateWhoseWorkARecordFromOutsideHasUsed(t *testing.T) {
	outside, err := eventlog.NewChunk(&eventlog.StatePatch{
		Patches: slices.Repeat([]eventlog.PatchOp{addOne("/n")}, 240),
		Base:    eventlog.Base{AgentID: "s", AgentType: "a", Timestamp: 1},
	}, eventlog.Labels{})
	require.NoError(t, err)
	log := &between{Log: memory.New(), add: outside}
	var hook error
	g := newRigOn(t, log, patchingAgent(func(h *agentloop.HookContext) { hook = h.Patch(slices.Repeat([]eventlog.PatchOp{addOne("/late")}, 32)) }))
	g.start("s", "a", "go")
	state := g.ended("s")
	require.Equal(t, projector.SessionCompleted, state.Status)
	require.NoError(t, hook)
	require.Len(t, state.Parked, 1)
	require.Equal(t, "state_patch", state.Parked[0].Type)
	require.Contains(t, state.Parked[0].Reason, "too much work")
	require.LessOrEqual(t, state.PatchWork, int64(projector.MaxPatchWork))
	require.NotContains(t, string(state.CustomState.Bytes()), `"late"`)
}
