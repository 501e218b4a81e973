package snapshot

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/projector"
)

// laid folds a session and returns its anchors.
func laid(records int) []anchor {
	t, lay := new(projector.Tree), layer{line: new(line)}
	for i, e := range logtest.LongSession("s", records) {
		r := eventlog.Record{Sequence: uint64(i + 1), Entry: e}
		projector.Apply(t, r)
		lay.see(r, t.Clone)
	}
	return lay.laid
}

// TestAnchorsShare: many states of a long session together take little more memory than
// the last one.
func TestAnchorsShare(t *testing.T) {
	t.Parallel()
	var one, all anchors
	list := laid(20_000)
	all.add(list)
	one.add(list[len(list)-1:])
	require.Len(t, all.list, 20_000/AnchorEvery)
	require.Less(t, all.thin(), 6*one.thin())
	require.Len(t, all.list, 20_000/AnchorEvery)
}

func TestAnchorsAreThinnedOut(t *testing.T) {
	t.Parallel()
	var a anchors
	for i := range 5 * MaxSessionAnchors {
		a.add([]anchor{{state: &projector.Tree{Head: uint64(i + 1)}, line: new(line)}})
	}
	last := a.list[len(a.list)-1].seq()
	a.thin()
	require.LessOrEqual(t, len(a.list), MaxSessionAnchors)
	require.Greater(t, len(a.list), MaxSessionAnchors/2)
	require.Equal(t, last, a.list[len(a.list)-1].seq(), "the last one stays")
	require.True(t, slices.IsSortedFunc(a.list, func(a, b anchor) int { return int(a.seq()) - int(b.seq()) }))

	a = anchors{}
	a.add([]anchor{{state: new(projector.Tree), line: new(line), content: 1}, {
		state: &projector.Tree{Head: 9}, line: new(line), content: 2 * MaxSessionAnchorBytes,
	}})
	a.thin()
	require.Len(t, a.list, 1, "one stays, whatever its size")
	require.EqualValues(t, 9, a.list[0].seq())
}

// TestAnchorsOfOneFoldAreBounded: the memory that each state has for itself, runs above
// all, counts while anchors are added.
func TestAnchorsOfOneFoldAreBounded(t *testing.T) {
	t.Parallel()
	state := &projector.Tree{Session: projector.Session{Runs: make([]projector.Run, 20_000)}}
	lay := layer{line: new(line)}
	const laid = 200
	for i := range laid * AnchorEvery {
		lay.see(eventlog.Record{Sequence: uint64(i + 1)}, func() *projector.Tree {
			c := *state
			c.Head = uint64(i + 1)
			return &c
		})
		require.LessOrEqual(t, lay.own, MaxSessionAnchorBytes)
	}
	require.Greater(t, len(lay.laid), 2)
	require.Less(t, len(lay.laid), laid/2)
	var a anchors
	a.add(lay.laid)
	require.GreaterOrEqual(t, a.size(), lay.own)
}

func TestStatesRequestedLongAgoAreDropped(t *testing.T) {
	t.Parallel()
	var a anchors
	grid := anchor{state: &projector.Tree{Head: 5}, line: new(line)}
	a.add([]anchor{grid})
	for i := range uint64(3 * askedAnchors) {
		a.add([]anchor{{state: &projector.Tree{Head: i + 1}, line: new(line), asked: true}})
	}
	require.Len(t, a.list, askedAnchors+1)
	require.Equal(t, grid.seq(), a.list[0].seq(), "it was not laid because it was asked for")
	found, ok := a.nearest(4)
	require.False(t, ok, "%v", found)
	found, _ = a.nearest(7)
	require.EqualValues(t, 5, found.seq())
	found, _ = a.nearest(1 << 40)
	require.EqualValues(t, 3*askedAnchors, found.seq())
}
