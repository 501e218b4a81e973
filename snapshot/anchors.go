package snapshot

import (
	"cmp"
	"context"
	"slices"
	"time"
	"unsafe"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// Bounds of the states that a store keeps in memory, so that those near them
// are had by folding a few records. Of a session that has been folded, be it for
// its timeline, there is one for each AnchorEvery records, or fewer if that takes
// too much, and those that were asked for last. The session that was asked for
// last may keep MaxSessionAnchorBytes and one state, whatever its size. The state
// after this node's last append is kept as well, however short the session is.
const (
	AnchorEvery           = 256
	MaxAnchoredSessions   = 4096
	MaxAnchorBytes        = 128 << 20
	MaxSessionAnchorBytes = 64 << 20
	MaxSessionAnchors     = 1024
	// AnchorIdle is how long a session's states are kept without a request for one.
	AnchorIdle = 5 * time.Minute

	// askedAnchors is how many states are kept because they were asked for.
	askedAnchors = 8
	// nearAnchor is how many sequences an anchor may lie before what is asked
	// for, that no saved fold is looked for.
	nearAnchor = 2 * DefaultSaveEvery
)

// anchor is a kept state. It never changes.
type anchor struct {
	state  *projector.Tree
	digest string // of the record at its head
	asked  bool   // it is kept because it was asked for
	// line tells the anchors of one fold, which share what they have: content
	// is about how many bytes that is up to here.
	line    *line
	content int
	own     int // about how many bytes are of this anchor alone
}

// line is what a fold began with. It is not empty, so that two are not one.
type line struct{ _ byte }

func (a anchor) seq() uint64 { return a.state.Head }

func (a anchor) sessions(f func(*projector.Session)) {
	f(&a.state.Session)
	for _, s := range a.state.Children {
		if s != nil {
			f(s)
		}
	}
}

// perAppend is about what an append with an idempotency key takes.
const perAppend = int(unsafe.Sizeof(projector.KeyedAppend{})) + 96

// measure sets what the anchor shares with no other one.
func (a *anchor) measure() {
	const (
		perSession = 1 << 10
		perRun     = int(unsafe.Sizeof(projector.Run{})) + int(unsafe.Sizeof(projector.Totals{})) + 64
		perAside   = int(unsafe.Sizeof(projector.Aside{}))
	)
	a.own = perAppend * len(a.state.Appends.Open)
	a.sessions(func(s *projector.Session) { a.own += perSession + perRun*len(s.Runs) + perAside*len(s.Asides) })
}

// anchors are those of a session.
type anchors struct {
	list  []anchor // by sequence
	asked []uint64 // the sequences of those that were asked for, the last one last
	// tip is up to where the session was folded, and how much that was after the
	// last fold that was saved.
	tip unsaved

	live *live // nil: there is none, or a [Tip] has it
	// sized is what size has counted for list, until that changes.
	sized int
}

// unsaved is how much has been folded since a fold was saved.
type unsaved struct {
	seq            uint64
	records, bytes int
	saved          int // size of the saved fold
	own            int // how much of that was not there before
}

// due reports whether another fold is worth its place.
func (u unsaved) due(every int) bool {
	return u.records > every && u.bytes >= u.own && u.bytes >= u.saved/saveShare
}

// nearest returns the last anchor at or before n.
func (a *anchors) nearest(n uint64) (found anchor, ok bool) {
	i, there := slices.BinarySearchFunc(a.list, n, func(x anchor, n uint64) int { return cmp.Compare(x.seq(), n) })
	if there {
		return a.list[i], true
	}
	if i == 0 {
		return found, false
	}
	return a.list[i-1], true
}

// add keeps anchors, which rise.
func (a *anchors) add(more []anchor) {
	if len(more) == 0 {
		return
	}
	a.sized = 0
	for _, m := range more {
		i, there := slices.BinarySearchFunc(a.list, m.seq(), func(x anchor, n uint64) int { return cmp.Compare(x.seq(), n) })
		switch {
		case !there:
			a.list = slices.Insert(a.list, i, m)
		case a.list[i].digest != m.digest: // of a log that has lost its end
			a.list[i] = m
		case !m.asked:
			a.list[i].asked = false
		}
		if m.asked {
			a.ask(m.seq())
		}
	}
}

// ask remembers what was asked for and forgets what was so long ago.
func (a *anchors) ask(seq uint64) {
	a.asked = append(slices.DeleteFunc(a.asked, func(n uint64) bool { return n == seq }), seq)
	if len(a.asked) > askedAnchors {
		old := a.asked[0]
		a.asked = slices.Delete(a.asked, 0, 1)
		a.list = slices.DeleteFunc(a.list, func(x anchor) bool { return x.asked && x.seq() == old })
	}
}

// thin drops every other anchor until no more are left than may be, and returns
// about how many bytes they hold.
func (a *anchors) thin() int {
	for {
		size := a.size()
		if len(a.list) <= 1 || len(a.list) <= MaxSessionAnchors && size <= MaxSessionAnchorBytes {
			return size
		}
		i := 0
		a.list = slices.DeleteFunc(a.list, func(anchor) bool { i++; return i%2 == 1 && i < len(a.list) })
		a.sized = 0
	}
}

// size is about how many bytes all that is kept of the session has.
func (a *anchors) size() int {
	if a.sized == 0 {
		a.sized = a.listSize()
	}
	if a.live == nil {
		return a.sized
	}
	more := a.live.own + a.live.lay.content
	if n := len(a.list); n > 0 && a.list[n-1].line == a.live.lay.line {
		more -= min(more, a.list[n-1].content)
	}
	return a.sized + more
}

// listSize is about how many bytes the anchors hold together.
func (a *anchors) listSize() int {
	const perMessage = int(unsafe.Sizeof(projector.Message{}))
	size := 0
	content, arrays := map[*line]int{}, map[*projector.Message]int{}
	for _, x := range a.list {
		content[x.line] = max(content[x.line], x.content)
		size += x.own
		x.sessions(func(s *projector.Session) {
			if len(s.Messages) > 0 {
				first := &s.Messages[0]
				arrays[first] = max(arrays[first], perMessage*len(s.Messages))
			}
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

// anchored returns the nearest anchor of a session at or before n; up to the
// head if n is 0, which is then returned if it had to be asked for. It returns
// none if a saved fold may be much nearer.
func (s *Store) anchored(ctx context.Context, session string, n uint64) (found anchor, near bool, tip unsaved, head uint64, err error) {
	if !s.anchors.Holds(session) {
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
	err = s.anchors.Use(ctx, session, func(a *anchors) (int, error) {
		found, _ = a.nearest(n)
		if l := a.live; l != nil && l.state.Head <= n && (found.state == nil || l.state.Head >= found.seq()) {
			found = l.anchor()
		}
		tip = a.tip
		return a.thin(), nil
	})
	return found, found.state != nil && n-found.seq() <= nearAnchor, tip, head, err
}

// keep keeps anchors of a session, unless something was erased since.
func (s *Store) keep(ctx context.Context, session string, erasures uint64, more []anchor, tip unsaved) {
	_ = s.anchors.Use(context.WithoutCancel(ctx), session, func(a *anchors) (int, error) {
		if s.erasures.Load() != erasures {
			return a.thin(), nil
		}
		a.add(more)
		if tip.seq >= a.tip.seq {
			a.tip = tip
		}
		return a.thin(), nil
	})
}

// forgetMemory forgets what is in memory of a session.
func (s *Store) forgetMemory(session string) {
	s.anchors.Drop(session)
	s.timelines.Drop(session)
}

// layer keeps anchors while records are folded.
type layer struct {
	line    *line
	content int
	records int // since the last anchor
	sparser int // how often the distance between two was doubled
	own     int // bytes of the kept ones, without what they share
	laid    []anchor
}

// see is called after each record with the tree's state, and reports whether it
// has kept that state.
func (l *layer) see(r eventlog.Record, state func() *projector.Tree) bool {
	l.content += contentOf(r)
	if l.records++; l.records < AnchorEvery<<l.sparser {
		return false
	}
	l.lay(state(), digest(r), false)
	return true
}

// lay keeps a state, which must not change afterwards.
func (l *layer) lay(state *projector.Tree, digest string, asked bool) {
	l.records = 0
	a := anchor{state: state, digest: digest, asked: asked, line: l.line, content: l.content}
	a.measure()
	l.own += a.own
	l.laid = append(l.laid, a)
	for l.own > MaxSessionAnchorBytes && len(l.laid) > 2 {
		l.thin()
	}
}

// thin drops every other one, and has those to come lie twice as far from each
// other: a fold of a long session must not take as much as it likes meanwhile.
func (l *layer) thin() {
	kept := l.laid[:0]
	l.own = 0
	for i, a := range l.laid {
		if i%2 == 1 || i == len(l.laid)-1 {
			kept = append(kept, a)
			l.own += a.own
		}
	}
	clear(l.laid[len(kept):])
	l.laid = kept
	l.sparser++
}

// contentOf is about how much of a record stays in the state: not the tokens,
// which come again in what a model has said.
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
