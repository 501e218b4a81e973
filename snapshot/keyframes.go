package snapshot

import (
	"cmp"
	"context"
	"slices"
	"unsafe"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// Bounds of the states that a store keeps in memory, so that a state near one of them is
// computed by folding a few records. A session that has been folded, for its timeline or
// otherwise, has one state for each keyframeEvery records, or fewer if they take too much
// memory, and the states that were last requested. The session that was last requested
// may keep maxSessionKeyframeBytes, and one state whatever its size. The state after this
// node's last append is kept as well, however short the session is.
const (
	keyframeEvery           = 256
	maxKeyframeSessions     = 4096
	maxSessionKeyframeBytes = 64 << 20
	maxSessionKeyframes     = 1024

	// askedKeyframes is how many states are kept because they were requested.
	askedKeyframes = 8
	// nearKeyframe is how many sequences a keyframe may be before the requested one without
	// a look for a nearer saved fold.
	nearKeyframe = 2 * defaultSaveEvery
)

// keyframe is a kept state. It never changes.
type keyframe struct {
	state  *projector.Tree
	digest string // of the record at its head
	asked  bool   // kept because it was requested
	// lineage identifies the keyframes of one fold, which share memory: content is about how
	// many bytes the shared part has up to this keyframe.
	lineage *lineage
	content int
	own     int // about how many bytes belong to this keyframe alone
}

// lineage identifies a fold by its address. It is not empty, so that two have different
// addresses.
type lineage struct{ _ byte }

func (a keyframe) seq() uint64 { return a.state.Head }

func (a keyframe) sessions(f func(*projector.Session)) {
	f(&a.state.Session)
	for _, s := range a.state.Children {
		if s != nil {
			f(s)
		}
	}
}

// perAppend is about how many bytes an append with an idempotency key takes.
const perAppend = int(unsafe.Sizeof(projector.KeyedAppend{})) + 96

// measure sets own.
func (a *keyframe) measure() {
	const (
		perSession = 1 << 10
		perRun     = int(unsafe.Sizeof(projector.Run{})) + int(unsafe.Sizeof(projector.Totals{})) + 64
	)
	a.own = perAppend * len(a.state.Appends.Open)
	a.sessions(func(s *projector.Session) { a.own += perSession + perRun*len(s.Runs) })
}

// keyframes are the keyframes of a session.
type keyframes struct {
	list  []keyframe // by sequence
	asked []uint64   // sequences of the requested ones, the most recent last
	// tip is the sequence up to which the session was folded, and how much was folded
	// since the last saved fold.
	tip unsaved

	live *live // nil: there is none, or a [Tip] has it
	// sized is the result of size for list; 0: list has changed.
	sized int
}

// unsaved is how much has been folded since a fold was saved.
type unsaved struct {
	seq            uint64
	records, bytes int
	saved          int // size of the saved fold
	own            int // the part of it that no earlier saved fold had
}

// due reports whether another saved fold is worth its space.
func (u unsaved) due(every int) bool {
	return u.records > every && u.bytes >= u.own && u.bytes >= u.saved/saveShare
}

// nearest returns the last keyframe at or before n.
func (a *keyframes) nearest(n uint64) (found keyframe, ok bool) {
	i, there := slices.BinarySearchFunc(a.list, n, func(x keyframe, n uint64) int { return cmp.Compare(x.seq(), n) })
	if there {
		return a.list[i], true
	}
	if i == 0 {
		return found, false
	}
	return a.list[i-1], true
}

// add keeps keyframes, sorted by sequence.
func (a *keyframes) add(more []keyframe) {
	if len(more) == 0 {
		return
	}
	a.sized = 0
	for _, m := range more {
		i, there := slices.BinarySearchFunc(a.list, m.seq(), func(x keyframe, n uint64) int { return cmp.Compare(x.seq(), n) })
		switch {
		case !there:
			a.list = slices.Insert(a.list, i, m)
		case a.list[i].digest != m.digest: // the kept one is of a log that has lost its end
			a.list[i] = m
		case !m.asked:
			a.list[i].asked = false
		}
		if m.asked {
			a.ask(m.seq())
		}
	}
}

// ask records that a state was requested, and drops the one whose last request is longest
// ago.
func (a *keyframes) ask(seq uint64) {
	a.asked = append(slices.DeleteFunc(a.asked, func(n uint64) bool { return n == seq }), seq)
	if len(a.asked) > askedKeyframes {
		old := a.asked[0]
		a.asked = slices.Delete(a.asked, 0, 1)
		a.list = slices.DeleteFunc(a.list, func(x keyframe) bool { return x.asked && x.seq() == old })
	}
}

// thin drops every other keyframe until the rest fits the bounds, and returns about how
// many bytes it takes.
func (a *keyframes) thin() int {
	for {
		size := a.size()
		if len(a.list) <= 1 || len(a.list) <= maxSessionKeyframes && size <= maxSessionKeyframeBytes {
			return size
		}
		i := 0
		a.list = slices.DeleteFunc(a.list, func(keyframe) bool { i++; return i%2 == 1 && i < len(a.list) })
		a.sized = 0
	}
}

// size is about how many bytes all that is kept of the session takes.
func (a *keyframes) size() int {
	if a.sized == 0 {
		a.sized = a.listSize()
	}
	if a.live == nil {
		return a.sized
	}
	more := a.live.own + a.live.layer.content
	if n := len(a.list); n > 0 && a.list[n-1].lineage == a.live.layer.lineage {
		more -= min(more, a.list[n-1].content)
	}
	return a.sized + more
}

// listSize is about how many bytes the keyframes take together.
func (a *keyframes) listSize() int {
	size := 0
	content, arrays := map[*lineage]int{}, map[any]int{}
	for _, x := range a.list {
		content[x.lineage] = max(content[x.lineage], x.content)
		size += x.own
		x.sessions(func(s *projector.Session) {
			measureArray(arrays, s.Messages)
			measureArray(arrays, s.Asides)
		})
	}
	for _, n := range content {
		size += n
	}
	for _, n := range arrays {
		size += n
	}
	return size
}

// measureArray records how many bytes of an array are used. Keyframes share arrays, which are
// known by the pointer to their first element.
func measureArray[T any](arrays map[any]int, list []T) {
	if len(list) > 0 {
		first := &list[0]
		arrays[first] = max(arrays[first], int(unsafe.Sizeof(list[0]))*len(list))
	}
}

// nearestKept returns the nearest keyframe of a session at or before n. If n is 0, that is the
// head; if the head had to be read from the log, it is returned. It returns none if a
// saved fold may be much nearer.
func (s *Store) nearestKept(ctx context.Context, session string, n uint64) (found keyframe, near bool, tip unsaved, head uint64, err error) {
	if !s.keyframes.Holds(session) {
		return found, false, tip, 0, nil
	}
	if n == 0 {
		var known bool
		if n, known = eventlog.HeadFrom(ctx, session); !known {
			if n, err = s.log.Head(ctx, session); err != nil {
				return found, false, tip, 0, err
			}
			head = n
		}
	}
	err = s.keyframes.Use(ctx, session, func(a *keyframes) (int, error) {
		found, _ = a.nearest(n)
		if l := a.live; l != nil && l.state.Head <= n && (found.state == nil || l.state.Head >= found.seq()) {
			found = l.keyframe()
		}
		tip = a.tip
		return a.thin(), nil
	})
	return found, found.state != nil && n-found.seq() <= nearKeyframe, tip, head, err
}

// keep adds keyframes of a session, and l if it is not nil, unless a session was erased
// since erasures was read.
func (s *Store) keep(ctx context.Context, session string, erasures uint64, more []keyframe, tip unsaved, l *live) {
	_ = s.keyframes.Use(context.WithoutCancel(ctx), session, func(a *keyframes) (int, error) {
		if s.erasures.Load() != erasures {
			return a.thin(), nil
		}
		a.add(more)
		if tip.seq >= a.tip.seq {
			a.tip = tip
		}
		if l != nil && (a.live == nil || a.live.state.Head < l.state.Head) {
			a.live = l
		}
		return a.thin(), nil
	})
}

// forgetMemory drops everything that is in memory of a session.
func (s *Store) forgetMemory(session string) {
	s.keyframes.Drop(session)
	s.timelines.Drop(session)
}

// layer adds keyframes while records are folded.
type layer struct {
	lineage *lineage
	content int
	records int // since the last keyframe
	sparser int // how often the distance between two keyframes was doubled
	own     int // bytes of the kept keyframes, without what they share
	added   []keyframe
}

// see is called after each record. It reports whether it has kept the tree's state.
func (l *layer) see(r eventlog.Record, state func() *projector.Tree) bool {
	l.content += contentOf(r)
	if l.records++; l.records < keyframeEvery<<l.sparser {
		return false
	}
	l.add(state(), digest(r), false)
	return true
}

// add keeps a state, which must not change afterwards.
func (l *layer) add(state *projector.Tree, digest string, asked bool) {
	l.records = 0
	a := keyframe{state: state, digest: digest, asked: asked, lineage: l.lineage, content: l.content}
	a.measure()
	l.own += a.own
	l.added = append(l.added, a)
	for l.own > maxSessionKeyframeBytes && len(l.added) > 2 {
		l.thin()
	}
}

// thin drops every other keyframe and doubles the distance between later ones: a fold of a
// long session must not take unbounded memory meanwhile.
func (l *layer) thin() {
	kept := l.added[:0]
	l.own = 0
	for i, a := range l.added {
		if i%2 == 1 || i == len(l.added)-1 {
			kept = append(kept, a)
			l.own += a.own
		}
	}
	clear(l.added[len(kept):])
	l.added = kept
	l.sparser++
}

// contentOf is about how many bytes of a record stay in the state. Tokens don't, since
// the recorded answer contains them.
func contentOf(r eventlog.Record) int {
	if _, _, keyed := eventlog.ParseKeyedWriter(r.Writer); keyed && r.Ordinal == 1 {
		return perAppend + len(r.Payload)
	}
	switch r.Type {
	case (*eventlog.TextDelta)(nil).Type(), (*eventlog.Thinking)(nil).Type(), (*eventlog.ToolArgStreamDelta)(nil).Type():
		return 0
	}
	return len(r.Payload)
}
