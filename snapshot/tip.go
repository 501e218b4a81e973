package snapshot

import (
	"context"
	"errors"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// live is the state after the last append of this node to a session. The next append
// folds it further, so no other part may keep it.
type live struct {
	folding
	// contended: other writers have appended to the session as well.
	contended bool
	unknown   bool // only the state's head is known
	own       int  // as that of a keyframe
}

// keyframe returns a copy for readers.
func (l *live) keyframe() keyframe {
	return keyframe{state: l.state.Clone(), digest: digest(l.last), lineage: l.layer.lineage, content: l.layer.content}
}

// Tip is the last state that this node knows of a session, for a caller that appends to
// the session. The state may be older than the session's head; [Tip.Append] compares
// them. A decision without an append needs a state that was read, see [Tip.Current]. A
// Tip is for one goroutine.
type Tip struct {
	store   *Store
	session string
	live
	current  bool
	erasures uint64
}

// Tip returns the state that this node has in memory, without a request to the log, if
// this node was the last one to append to the session. Otherwise it reads the state at
// the head; a session that does not exist has the zero state. The caller releases the
// Tip.
func (s *Store) Tip(ctx context.Context, session string) (*Tip, error) {
	t := &Tip{store: s, session: session, erasures: s.erasures.Load()}
	if s.keyframes.Holds(session) {
		err := s.keyframes.Use(ctx, session, func(a *keyframes) (int, error) {
			if l := a.live; l != nil {
				a.live = nil
				if n := len(a.list); n == 0 || a.list[n-1].seq() <= l.state.Head { // else a reader has a later state
					t.live = *l
				}
			}
			return a.thin(), nil
		})
		if err != nil {
			return nil, err
		}
	}
	if t.state != nil && !t.contended {
		return t, nil
	}
	if err := t.Read(ctx); err != nil {
		t.Release()
		return nil, err
	}
	return t, nil
}

// Session returns the session's id.
func (t *Tip) Session() string { return t.session }

// Tree returns the state. It must not be changed, and is valid until the next
// call of another method.
func (t *Tip) Tree() *projector.Tree { return t.state }

// Current reports whether the state was read since the Tip was taken.
func (t *Tip) Current() bool { return t.current }

// Read folds the state up to the session's head. Errors: as eventlog.Log.Read, without
// ErrSessionNotFound.
func (t *Tip) Read(ctx context.Context) error {
	if t.state != nil && t.state.Head > 0 {
		done, err := t.readOn(ctx)
		if done || err != nil {
			return err
		}
	}
	f, err := t.store.folded(ctx, t.session, 0)
	switch {
	case errors.Is(err, eventlog.ErrSessionNotFound):
		f = &folding{state: new(projector.Tree), layer: layer{lineage: new(lineage)}}
	case err != nil:
		return err
	}
	t.live = live{folding: *f}
	t.current = true
	return nil
}

// readOn folds the records after the state, so that a producer keeps up with a run that
// writes continuously. done is false if the log no longer has the state's last record:
// the session was erased, the log has lost its end, or retention has removed the record.
func (t *Tip) readOn(ctx context.Context) (done bool, err error) {
	was := t.live
	t.live = live{}
	tip := was.tip
	tip.seq = was.known
	f, err := t.store.run(ctx, t.session, start{
		state: was.state, digest: digest(was.last), tip: tip, memory: true, lineage: was.layer.lineage, content: was.layer.content,
	}, 0)
	_, ahead := errors.AsType[*eventlog.CursorAheadError](err)
	_, trimmed := errors.AsType[*eventlog.TrimmedError](err)
	if ahead || trimmed || errors.Is(err, errStale) || errors.Is(err, eventlog.ErrSessionNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	t.live = live{folding: *f, contended: f.state.Head > was.last.Sequence}
	t.current = true
	return true, nil
}

// Append appends entries after the state, as eventlog.AppendOnce does, and folds
// them. Errors: as eventlog.AppendOnce.
func (t *Tip) Append(ctx context.Context, writer string, entries []eventlog.Entry) (uint64, error) {
	last, found, err := eventlog.AppendOrFind(ctx, t.store.log, t.session, writer, t.state.Head, entries)
	if err != nil {
		return last, err
	}
	if found { // stored by an earlier try, whose records may have another time
		if t.live = (live{}); t.Read(ctx) != nil {
			t.live = live{folding: folding{state: &projector.Tree{Head: last}}, unknown: true}
		}
		return last, nil
	}
	now := time.Now() // folds don't use it
	for i, e := range entries {
		e.Writer, e.Ordinal = writer, uint64(i)+1
		t.take(ctx, t.store, t.session, eventlog.Record{Sequence: last + 1 - uint64(len(entries)-i), Time: now, Entry: e})
	}
	return last, nil
}

// Release keeps the state for the next caller.
func (t *Tip) Release() {
	s := t.store
	if t.state == nil || t.state.Head == 0 || t.unknown {
		return
	}
	t.known = max(t.known, t.state.Head)
	t.tip.seq = t.known
	measured := keyframe{state: t.state}
	measured.measure()
	t.own = measured.own
	// It needs no deadline: Use does not wait for callers that read the log.
	added := t.layer.added
	t.layer.added = nil
	l := t.live
	s.keep(context.Background(), t.session, t.erasures, added, t.tip, &l)
}
