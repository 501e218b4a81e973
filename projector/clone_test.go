package projector_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector"
)

// TestAClonesFoldIsItsOwn: a state and its clones are independent, whichever of them is
// folded further.
func TestAClonesFoldIsItsOwn(t *testing.T) {
	testkit.Sequential(t)
	t.Parallel()
	rnd := testkit.Random(t)
	type kept struct {
		state *projector.Tree
		want  string
	}
	for range testkit.Times(60) {
		log := randomLog(rnd, 120)
		live := new(projector.Tree)
		var all []kept
		for _, r := range log {
			projector.Apply(live, r)
			if rnd.IntN(6) == 0 {
				c := live.Clone()
				all = append(all, kept{c, encoded(t, live)})
			}
			if rnd.IntN(20) == 0 && len(all) > 0 { // one of them diverges
				branch := all[rnd.IntN(len(all))].state.Clone()
				for _, r := range randomLog(rnd, 20) {
					r.Sequence += branch.Head
					projector.Apply(branch, r)
				}
			}
		}
		require.Equal(t, encoded(t, projector.Fold(log...)), encoded(t, live))
		for _, k := range all {
			require.Equal(t, k.want, encoded(t, k.state))
			again := k.state.Clone()
			for _, r := range log {
				projector.Apply(again, r)
			}
			require.Equal(t, encoded(t, live), encoded(t, again), "a clone is folded on as the original")
		}
	}
}

func TestCloningALongSessionIsCheap(t *testing.T) {
	state := projector.Fold(numbered(logtest.LongSession("s", 5_000)...)...)
	require.Empty(t, state.Parked)
	require.Greater(t, len(state.Messages), 100)
	require.Less(t, testing.AllocsPerRun(10, func() { state.Clone() }), 20.0)
}
