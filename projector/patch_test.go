package projector_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector"
)

func patches(ops ...eventlog.PatchOp) eventlog.Entry {
	return chunk(&eventlog.StatePatch{Patches: ops, Base: base("s")}, "")
}

func addOp(path, value string) eventlog.PatchOp {
	return eventlog.PatchOp{Op: "add", Path: path, Value: json.RawMessage(value)}
}

// wideKey is so long that work on the object that has it counts as much as a record may
// restore, less a fifth.
var wideKey = strings.Repeat("k", 200_000)

// wideState is a state, and a patch of it that needs more work than a session may use.
func wideState() (state, tooMuch eventlog.Entry) {
	state = patches(addOp("/a", "[0]"), addOp("/"+wideKey, "0"))
	return state, patches(slices.Repeat([]eventlog.PatchOp{addOp("/a/0", "1")}, 3_000)...)
}

func TestAPatchThatIsTooMuchWorkIsParked(t *testing.T) {
	testkit.Sequential(t)
	state, tooMuch := wideState()
	small := patches(addOp("/a/0", "7"))
	log := numbered(state, small, tooMuch, small, patches(addOp("/b", "1")))
	whole := projector.Fold(log...)
	require.Len(t, whole.Parked, 1)
	require.Equal(t, log[2].Sequence, whole.Parked[0].Sequence)
	require.Contains(t, whole.Parked[0].Reason, "too much work")
	require.Equal(t, len(wideKey)+len(`{"a":[7,7,0],"":0,"b":1}`), whole.CustomState.Len(), "the others are applied")

	inPieces := new(projector.Tree)
	for _, r := range log {
		projector.Apply(inPieces, r)
		inPieces = restored(t, inPieces)
	}
	require.Equal(t, whole.Parked, inPieces.Parked, "every node parks the same")
	require.Equal(t, whole.PatchWork, inPieces.PatchWork)
	require.Equal(t, whole.CustomState.String(), inPieces.CustomState.String())
}

func TestEachRecordGivesWorkBack(t *testing.T) {
	testkit.Sequential(t)
	state, tooMuch := wideState()
	tree := projector.Fold(numbered(state, tooMuch)...)
	require.EqualValues(t, projector.MaxPatchWork-projector.PatchWorkBack, tree.PatchWork)
	last := tree.Head
	text := chunk(&eventlog.TextDelta{Delta: "x", Base: base("s")}, "")
	for range projector.MaxPatchWork / projector.PatchWorkBack {
		last++
		projector.Apply(tree, eventlog.Record{Sequence: last, Entry: text})
	}
	require.Zero(t, tree.PatchWork)
	require.NotContains(t, encoded(t, tree), "patchWork", "a session that has not much to do has no trace of it")
	projector.Apply(tree, eventlog.Record{Sequence: last + 1, Entry: patches(addOp("/b", "1"))})
	require.Len(t, tree.Parked, 1)
}

func TestWhatWouldBeParkedIsKnownBefore(t *testing.T) {
	testkit.Sequential(t)
	state, tooMuch := wideState()
	of := func(e eventlog.Entry) *eventlog.StatePatch {
		c, err := eventlog.Record{Entry: e}.Chunk()
		require.NoError(t, err)
		return c.(*eventlog.StatePatch)
	}
	tree := projector.Fold(numbered(state)...)
	before := encoded(t, tree.PatchWork)
	require.ErrorIs(t, tree.CheckPatches(t.Context(), []*eventlog.StatePatch{nil, of(tooMuch)}), projector.ErrTooMuchWork)
	require.ErrorIs(t, new(projector.Tree).CheckPatches(t.Context(), []*eventlog.StatePatch{of(state), of(tooMuch)}), projector.ErrTooMuchWork)
	require.NoError(t, tree.CheckPatches(t.Context(), []*eventlog.StatePatch{of(patches(addOp("/none/x", "1"))), nil, of(patches(addOp("/a/0", "1")))}))
	require.Equal(t, before, encoded(t, tree.PatchWork), "it is only asked")

	gone, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, tree.CheckPatches(gone, []*eventlog.StatePatch{of(tooMuch)}), context.Canceled, "nobody waits for it any more")
}

func TestACustomEventWithAnIDAfterItsTurn(t *testing.T) {
	event := chunk(&eventlog.CustomEvent{EventName: "progress", Data: json.RawMessage(`{"id":"e","n":1}`), Base: base("s")}, "r1")
	log := numbered(
		factOf("s", &fact.SessionCreated{AgentType: "agent", Base: factBase("s")}),
		factOf("s", &fact.UserMessage{Content: "hi", Base: factBase("s")}),
		factOf("s", &fact.RunRequested{RunID: "r1", Mode: fact.ModeStart, Base: factBase("s")}),
		event,
		factOf("s", &fact.RunEnded{RunID: "r1", Status: fact.RunCompleted, Base: factBase("s")}),
		event,
	)
	tree := projector.Fold(log...)
	require.Len(t, tree.Asides, 1)
	require.Equal(t, log[len(log)-1].Sequence, tree.Head)
}
