package snapshot

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/projector"
)

// keyframesOf folds a session and returns its keyframes.
func keyframesOf(records int) []keyframe {
	t, l := new(projector.Tree), layer{lineage: new(lineage)}
	for i, e := range logtest.LongSession("s", records) {
		r := eventlog.Record{Sequence: uint64(i + 1), Entry: e}
		projector.Apply(t, r)
		l.see(r, t.Clone)
	}
	return l.added
}

// TestKeyframesShare: many states of a long session together take little more memory than
// the last one.
func TestKeyframesShare(t *testing.T) {
	t.Parallel()
	var one, all keyframes
	list := keyframesOf(20_000)
	all.add(list)
	one.add(list[len(list)-1:])
	require.Len(t, all.list, 20_000/keyframeEvery)
	require.Less(t, all.thin(), 6*one.thin())
	require.Len(t, all.list, 20_000/keyframeEvery)
}

func TestKeyframesAreThinnedOut(t *testing.T) {
	t.Parallel()
	var a keyframes
	for i := range 5 * maxSessionKeyframes {
		a.add([]keyframe{{state: &projector.Tree{Head: uint64(i + 1)}, lineage: new(lineage)}})
	}
	last := a.list[len(a.list)-1].seq()
	a.thin()
	require.LessOrEqual(t, len(a.list), maxSessionKeyframes)
	require.Greater(t, len(a.list), maxSessionKeyframes/2)
	require.Equal(t, last, a.list[len(a.list)-1].seq(), "the last one stays")
	require.True(t, slices.IsSortedFunc(a.list, func(a, b keyframe) int { return int(a.seq()) - int(b.seq()) }))

	a = keyframes{}
	a.add([]keyframe{{state: new(projector.Tree), lineage: new(lineage), content: 1}, {
		state: &projector.Tree{Head: 9}, lineage: new(lineage), content: 2 * maxSessionKeyframeBytes,
	}})
	a.thin()
	require.Len(t, a.list, 1, "one stays, whatever its size")
	require.EqualValues(t, 9, a.list[0].seq())
}

// TestKeyframesOfOneFoldAreBounded: the memory that each state has for itself, runs above
// all, counts while keyframes are added.
func TestKeyframesOfOneFoldAreBounded(t *testing.T) {
	t.Parallel()
	state := &projector.Tree{Session: projector.Session{Runs: make([]projector.Run, 20_000)}}
	l := layer{lineage: new(lineage)}
	const many = 200
	for i := range many * keyframeEvery {
		l.see(eventlog.Record{Sequence: uint64(i + 1)}, func() *projector.Tree {
			c := *state
			c.Head = uint64(i + 1)
			return &c
		})
		require.LessOrEqual(t, l.own, maxSessionKeyframeBytes)
	}
	require.Greater(t, len(l.added), 2)
	require.Less(t, len(l.added), many/2)
	var a keyframes
	a.add(l.added)
	require.GreaterOrEqual(t, a.size(), l.own)
}

func TestStatesRequestedLongAgoAreDropped(t *testing.T) {
	t.Parallel()
	var a keyframes
	grid := keyframe{state: &projector.Tree{Head: 5}, lineage: new(lineage)}
	a.add([]keyframe{grid})
	for i := range uint64(3 * askedKeyframes) {
		a.add([]keyframe{{state: &projector.Tree{Head: i + 1}, lineage: new(lineage), asked: true}})
	}
	require.Len(t, a.list, askedKeyframes+1)
	require.Equal(t, grid.seq(), a.list[0].seq(), "it was not added because it was asked for")
	found, ok := a.nearest(4)
	require.False(t, ok, "%v", found)
	found, _ = a.nearest(7)
	require.EqualValues(t, 5, found.seq())
	found, _ = a.nearest(1 << 40)
	require.EqualValues(t, 3*askedKeyframes, found.seq())
}
